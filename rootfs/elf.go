package rootfs

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// errLibrary is what a program is refused for whose libraries can't be had.
var errLibrary = errors.New("library not found on the host")

// extras are libraries that programs load by name only once they run, or that
// native addons commonly need. Those that the host lacks are left out.
var extras = []string{
	"libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2", // name lookups
	"libgcc_s.so.1", // pthread_cancel
	"libstdc++.so.6", "libatomic.so.1", "libm.so.6",
	"libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1",
}

// linker finds libraries in folders of the host as the dynamic loader would,
// but by reading: running ldd on a program can run the program.
type linker struct {
	dirs    []string
	machine elf.Machine
}

// closure is what a program needs to start: its loader, and for each library
// name the file of the host.
type closure struct {
	loader string
	libs   map[string]string
}

// closureOf reads the program at host path bin. A static one needs nothing.
func closureOf(bin string, dirs []string) (*closure, error) {
	f, err := elf.Open(bin)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := &closure{libs: map[string]string{}}
	if c.loader = interpreter(f); c.loader == "" {
		return c, nil
	}
	if !isLoader(c.loader) {
		return nil, fmt.Errorf("%s: loader %q refused", bin, c.loader)
	}
	l := &linker{dirs, f.Machine}
	needed, err := f.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	if err := l.add(c, needed); err != nil {
		return nil, fmt.Errorf("%s: %w", bin, err)
	}
	for _, name := range extras {
		if err := l.add(c, []string{name}); err != nil && !errors.Is(err, errLibrary) {
			return nil, err
		}
	}
	return c, nil
}

// add adds the libraries, and what they need in turn.
func (l *linker) add(c *closure, names []string) error {
	for queue := names; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if c.libs[name] != "" || name == path.Base(c.loader) {
			continue
		}
		file, needed, err := l.find(name)
		if err != nil {
			return err
		}
		c.libs[name] = file
		queue = append(slices.Clip(queue), needed...)
	}
	return nil
}

// find returns the host's file of the library, and the libraries it needs.
func (l *linker) find(name string) (file string, needed []string, err error) {
	if name != path.Base(name) {
		return "", nil, fmt.Errorf("library %q: a path", name)
	}
	for _, dir := range l.dirs {
		file := filepath.Join(dir, name)
		f, err := elf.Open(file)
		if err != nil {
			continue // missing, or a linker script
		}
		needed, err := f.ImportedLibraries()
		fits := f.Machine == l.machine
		_ = f.Close()
		if fits {
			return file, needed, err
		}
	}
	return "", nil, fmt.Errorf("%s: %w", name, errLibrary)
}

// interpreter returns the loader that a program names, "" for none.
func interpreter(f *elf.File) string {
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

// isLoader says whether p can be a dynamic loader. The program names it, and
// what it names is copied from the host: it must not get at another file.
func isLoader(p string) bool {
	dir := strings.TrimPrefix(path.Dir(p), "/usr")
	return path.Clean(p) == p && strings.HasPrefix(path.Base(p), "ld-") &&
		(strings.HasPrefix(dir, "/lib/") || dir == "/lib" || dir == "/lib64")
}
