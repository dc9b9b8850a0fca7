package programs

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ErrLibraryNotFound is the error for a program whose libraries are missing.
var ErrLibraryNotFound = errors.New("library not found on the host")

// LibraryDirs lists the folders that may hold the C library, in an image or on the host. The
// loader of every current distribution searches the folders of its processor.
var LibraryDirs = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
	"/lib64", "/usr/lib64", "/lib", "/usr/lib"}

// extras lists libraries that programs load by name at run time, and common dependencies of
// native addons. The host need not have them.
var extras = []string{
	"libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2", // name lookups
	"libgcc_s.so.1", // pthread_cancel
	"libstdc++.so.6", "libatomic.so.1", "libm.so.6",
	"libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1",
}

// Closure is the loader and the libraries of a program.
type Closure struct {
	Loader string            // path of the dynamic loader; "" for a static program
	Libs   map[string]string // host path of each library, by name

	root    string // host path of the folder that LibraryDirs are below
	machine elf.Machine
}

// FindLibraries returns the loader of the program at a host path, and the libraries that it needs
// directly and indirectly. It searches LibraryDirs below the host path root.
func FindLibraries(program, root string) (*Closure, error) {
	f, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := &Closure{Libs: map[string]string{}, root: root, machine: f.Machine}
	if c.Loader = Loader(f); c.Loader == "" {
		return c, nil
	}
	if !isLoader(c.Loader) {
		return nil, fmt.Errorf("%s: loader %q refused", program, c.Loader)
	}
	needed, err := f.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	if err := c.add(needed); err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	for _, name := range extras {
		if err := c.add([]string{name}); err != nil && !errors.Is(err, ErrLibraryNotFound) {
			return nil, err
		}
	}
	return c, nil
}

// add adds the libraries and their dependencies.
func (c *Closure) add(names []string) error {
	for queue := names; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if c.Libs[name] != "" || name == path.Base(c.Loader) {
			continue
		}
		file, needed, err := c.find(name)
		if err != nil {
			return err
		}
		c.Libs[name] = file
		queue = append(slices.Clip(queue), needed...)
	}
	return nil
}

// find returns the host path of a library, and the names of the libraries that it needs.
func (c *Closure) find(name string) (file string, needed []string, err error) {
	if name != path.Base(name) {
		return "", nil, fmt.Errorf("library %q: a path", name)
	}
	for _, dir := range LibraryDirs {
		file := filepath.Join(c.root, dir, name)
		f, err := elf.Open(file)
		if err != nil {
			continue // missing, or a linker script
		}
		needed, err := f.ImportedLibraries()
		fits := f.Machine == c.machine // a folder may have libraries of a foreign architecture
		f.Close()
		if fits {
			return file, needed, err
		}
	}
	return "", nil, fmt.Errorf("%s: %w", name, ErrLibraryNotFound)
}

// isLoader reports whether p can be a dynamic loader. The program names the loader, and the
// builder copies it from the host: the name must not lead to another file.
func isLoader(p string) bool {
	dir := strings.TrimPrefix(path.Dir(p), "/usr")
	return path.Clean(p) == p && strings.HasPrefix(path.Base(p), "ld-") &&
		(strings.HasPrefix(dir, "/lib/") || dir == "/lib" || dir == "/lib64")
}

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
