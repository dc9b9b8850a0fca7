package hostfs

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
)

var oddNames = []string{
	"a", "b", "c", "d", "new\nline", "\xff\xfe", strings.Repeat("n", 255), " ", "..x", "-rf", "ünïcode", `back\slash`, "*?[",
}

// script is a random sequence of operations.
type script struct{ *rand.Rand }

func (s script) path() string {
	if s.IntN(200) == 0 {
		return "/"
	}
	var b strings.Builder
	for range 1 + s.IntN(4) {
		b.WriteString("/" + s.name())
	}
	return b.String()
}

func (s script) name() string {
	if s.IntN(4) > 0 {
		return oddNames[s.IntN(4)]
	}
	return oddNames[s.IntN(len(oddNames))]
}

func (s script) text() string {
	switch s.IntN(5) {
	case 0:
		return s.path()
	case 1:
		return "../" + s.name()
	case 2:
		return "../../../../" + s.name() + "/./" + s.name()
	case 3:
		return s.name() + "/.."
	}
	return s.name()
}

func (s script) data() []byte {
	b := make([]byte, s.IntN(1<<s.IntN(13)))
	for i := range b {
		b[i] = byte(s.Uint32())
	}
	return b
}

func (s script) mode() fs.FileMode {
	return []fs.FileMode{0o755, 0o755, 0o700, 0o644, 0o777, 0o500, 0o200, 0, 0o777 | fs.ModeSticky}[s.IntN(9)]
}

func describe(i fs.FileInfo) string {
	size := i.Size()
	if !i.Mode().IsRegular() {
		size = 0
	}
	return fmt.Sprint(i.Mode(), size)
}

// next returns the next operation and its description. If loose is set, the error of the other
// side may be of another kind.
func (s script) next() (what string, loose bool, do func(tree) outcome) {
	p, q, data, mode, text := s.path(), s.path(), s.data(), s.mode(), s.text()
	only := func(name string, f func(t tree) error) (string, bool, func(tree) outcome) {
		return name, false, func(t tree) outcome { return outcome{err: f(t)} }
	}
	info := func(name string, f func(t tree) (fs.FileInfo, error)) (string, bool, func(tree) outcome) {
		return name, false, func(t tree) outcome {
			i, err := f(t)
			if err != nil {
				return outcome{err: err}
			}
			return outcome{describe(i), nil}
		}
	}
	quoted := strconv.Quote(p)
	switch n := s.IntN(100); {
	case n < 18:
		return only(fmt.Sprintf("write %s %d", quoted, len(data)), func(t tree) error { return t.write(p, data) })
	case n < 24:
		return only(fmt.Sprintf("append %s %d", quoted, len(data)), func(t tree) error { return t.add(p, data) })
	case n < 36:
		return "read " + quoted, false, func(t tree) outcome {
			b, err := t.read(p)
			return outcome{string(b), err}
		}
	case n < 44:
		return "readdir " + quoted, false, func(t tree) outcome {
			list, err := t.list(p)
			var b strings.Builder
			for _, e := range list {
				fmt.Fprintf(&b, "%q %v\n", e.Name(), e.Type())
			}
			return outcome{b.String(), err}
		}
	case n < 50:
		return info("stat "+quoted, func(t tree) (fs.FileInfo, error) { return t.stat(p) })
	case n < 54:
		return info("lstat "+quoted, func(t tree) (fs.FileInfo, error) { return t.lstat(p) })
	case n < 67:
		_, _, do := only("", func(t tree) error { return t.mkdirAll(p) })
		return "mkdir " + quoted, true, do // the errors name different components
	case n < 73:
		return only("remove "+quoted, func(t tree) error { return t.remove(p) })
	case n < 75:
		if p == "/" { // ours does not remove the content of the root
			p, quoted = "/a", `"/a"`
		}
		_, _, do := only("", func(t tree) error { return t.clear(p) })
		return "removeall " + quoted, true, do // the order decides which of several errors is returned
	case n < 83:
		return only("rename "+quoted+" "+strconv.Quote(q), func(t tree) error { return t.rename(p, q) })
	case n < 90:
		return only("symlink "+strconv.Quote(text)+" "+quoted, func(t tree) error { return t.symlink(text, p) })
	case n < 94:
		return "readlink " + quoted, false, func(t tree) outcome {
			text, err := t.readLink(p)
			return outcome{text, err}
		}
	}
	return only(fmt.Sprintf("chmod %s %v", quoted, mode), func(t tree) error { return t.chmod(p, mode) })
}

// guest changes both trees as a guest could, by system calls on the host.
func (s script) guest(one, two string) {
	p, q := s.path(), s.path()
	for _, root := range []string{one, two} {
		if s.isLinked(root+q) || s.isLinked(root+p) { // links lead the host elsewhere
			return
		}
	}
	size := int64(1) << (20 + s.IntN(12))
	hard := s.IntN(2) == 0
	for _, root := range []string{one, two} {
		if hard {
			_ = os.Link(root+p, root+q)
		} else if i, err := os.Lstat(root + p); err == nil && i.Mode().IsRegular() {
			_ = os.Truncate(root+p, size)
			_ = os.Truncate(root+p, i.Size()+1)
		}
	}
}

func (s script) isLinked(p string) bool {
	for i := strings.Index(p[1:], "/") + 2; i <= len(p); i++ {
		if i == len(p) || p[i] == '/' {
			if info, err := os.Lstat(p[:i]); err == nil && info.Mode()&fs.ModeSymlink != 0 {
				return true
			}
		}
	}
	return false
}
