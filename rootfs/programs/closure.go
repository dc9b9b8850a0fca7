package programs

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// LibraryDirs lists the folders that may hold the C library of an image. The
// loader of every current distribution searches the folders of its processor.
var LibraryDirs = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
	"/lib64", "/usr/lib64", "/lib", "/usr/lib"}

// extras lists libraries that programs load by name at run time, and common dependencies of
// native addons. The host need not have them. None depends on a library that is not among the extras.
var extras = []string{
	"libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2", // name lookups
	"libgcc_s.so.1", // pthread_cancel
	"libstdc++.so.6", "libatomic.so.1", "libm.so.6",
	"libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1",
}

// FindLibraries returns the loader of the program at a host path, "" for a static program, and the host
// paths of the libraries that it needs on this machine, with their dependencies. The loader lists them
// without running the program.
func FindLibraries(ctx context.Context, program string) (loader string, libraries []string, err error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	if loader = Loader(f); loader == "" {
		return "", nil, nil
	}
	if !isLoader(loader) {
		return "", nil, fmt.Errorf("%s: loader %q refused", program, loader)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, loader, "--list", program)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w: %s", loader, err, firstError(stderr.String()))
	}
	for line := range strings.Lines(string(out)) {
		if _, found, ok := strings.Cut(line, " => "); ok {
			file, _, _ := strings.Cut(found, " (")
			libraries = append(libraries, file)
		}
	}
	for _, library := range slices.Clone(libraries) {
		for _, name := range extras {
			file := filepath.Join(filepath.Dir(library), name)
			if _, err := os.Stat(file); err == nil && !slices.Contains(libraries, file) {
				libraries = append(libraries, file)
			}
		}
	}
	return loader, libraries, nil
}

// isLoader reports whether p can be a dynamic loader. The program names the loader, and the
// builder copies it from the host: the name must not lead to another file.
func isLoader(p string) bool {
	dir := strings.TrimPrefix(path.Dir(p), "/usr")
	return path.Clean(p) == p && strings.HasPrefix(path.Base(p), "ld-") &&
		(strings.HasPrefix(dir, "/lib/") || dir == "/lib" || dir == "/lib64")
}

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
		return nil, errors.New("not a 64-bit little-endian program")
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
