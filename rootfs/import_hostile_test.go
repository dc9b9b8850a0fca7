package rootfs

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"os"
	goruntime "runtime"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// bloated makes a program with a section name table of size bytes.
func bloated(t *testing.T, size int) string {
	t.Helper()
	var table, out bytes.Buffer
	must(t, binary.Write(&table, binary.LittleEndian, elf.Chdr64{Type: uint32(elf.COMPRESS_ZLIB), Size: uint64(size), Addralign: 1}))
	w := zlib.NewWriter(&table)
	_, err := w.Write(make([]byte, size))
	must(t, err)
	must(t, w.Close())
	const header, section = 64, 64
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[goruntime.GOARCH]
	for _, part := range []any{
		elf.Header64{
			Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}, Type: uint16(elf.ET_DYN),
			Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Shoff: header, Ehsize: header, Shentsize: section, Shnum: 2, Shstrndx: 1,
		},
		elf.Section64{},
		elf.Section64{Type: uint32(elf.SHT_STRTAB), Flags: uint64(elf.SHF_COMPRESSED), Off: header + 2*section, Size: uint64(table.Len())},
		table.Bytes(),
	} {
		must(t, binary.Write(&out, binary.LittleEndian, part))
	}
	return out.String()
}

// TestImportOfBloatedPrograms checks that large sections of an image's programs are not read into
// memory.
func TestImportOfBloatedPrograms(t *testing.T) {
	const size = 64 << 20
	evil := bloated(t, size)
	program, err := os.ReadFile("/usr/bin/env")
	must(t, err)
	for name, entries := range map[string][]entry{
		"node": {file("usr/local/bin/node", evil, 0o755)},
		"libc": {file("usr/local/bin/node", string(program), 0o755), file(hostLoader(t), string(program), 0o755), file("lib64/libc.so.6", evil, 0o755)},
	} {
		s, source := openTiny(t, t.TempDir()), dockerSave(t, imageOf(t, v1.Config{}, layerOf(t, entries...)))
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		i, err := s.Import(t.Context(), source, anonymous)
		goruntime.ReadMemStats(&after)
		must(t, err)
		if i.Imported.Zygote {
			t.Errorf("%s: the image claims to have a zygote", name)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > size {
			t.Errorf("%s: took %d bytes of memory", name, took)
		}
	}
}
