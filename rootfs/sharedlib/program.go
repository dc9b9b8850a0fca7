package sharedlib

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
)

var errFormat = errors.New("not a 64-bit little-endian program")

// IsStatic reports whether the host path names a program that needs no loader and no
// library.
func IsStatic(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	return err == nil && len(libs) == 0 && Loader(f) == ""
}

// Loader returns the path of the dynamic loader that a program names, "" for none.
func Loader(f *elf.File) string {
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		text := make([]byte, min(p.Filesz, 4096)) // PATH_MAX
		if _, err := p.ReadAt(text, 0); err != nil {
			return ""
		}
		text, _, _ = bytes.Cut(text, []byte{0})
		return string(text)
	}
	return ""
}

// OpenUntrusted reads the headers of a hostile program, but none of its sections: package
// elf reads and decompresses as many bytes as sections claim to have. A program starts
// without its sections.
func OpenUntrusted(r io.ReaderAt) (*elf.File, error) {
	var h elf.Header64
	if err := binary.Read(io.NewSectionReader(r, 0, int64(binary.Size(h))), binary.LittleEndian, &h); err != nil {
		return nil, err
	}
	if elf.Class(h.Ident[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(h.Ident[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil, errFormat
	}
	h.Shoff, h.Shnum, h.Shstrndx = 0, 0, 0
	head, err := binary.Append(nil, binary.LittleEndian, h)
	if err != nil {
		return nil, err
	}
	return elf.NewFile(withHead{r, head})
}

// withHead is a file whose first bytes are replaced by head.
type withHead struct {
	io.ReaderAt
	head []byte
}

func (h withHead) ReadAt(p []byte, off int64) (int, error) {
	n, err := h.ReaderAt.ReadAt(p, off)
	if off < int64(len(h.head)) {
		copy(p[:n], h.head[off:])
	}
	return n, err
}
