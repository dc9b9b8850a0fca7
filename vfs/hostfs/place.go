package hostfs

import (
	"cmp"
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// place is a name in an open folder. The name may not exist.
type place struct {
	dir  int // O_PATH
	name string
}

// noPlace is returned with an error. It can be closed.
var noPlace = place{dir: -1}

func (p place) close() { closeFD(p.dir) }

// checkUnmounted returns EBUSY if the place is a mount point. The result stays true: a guest
// can neither mount anything nor move a mount point.
func (p place) checkUnmounted() error {
	st, err := statAt(p.dir, p.name)
	if err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return unix.EBUSY
	}
	if err == unix.ENOENT {
		return nil
	}
	return err
}

// onPlace calls do, in a step, with the place that find returns for a guest path.
func (f *FS) onPlace(op, path string, find func(root base, path string) (place, error), do func(p place) error) error {
	return f.at(op, path, func(root base) error {
		p, err := find(root, path)
		if err != nil {
			return err
		}
		defer p.close()
		return do(p)
	})
}

// locate opens the folder of a path's last component.
func locate(root base, path string) (place, error) {
	i := strings.LastIndexByte(path, '/')
	dir, name := path[:i+1], path[i+1:]
	switch name {
	case "":
		return noPlace, errRoot
	case ".", "..": // only from a guest's link
		return noPlace, cmp.Or(checkFolder(root, path), error(unix.EISDIR))
	}
	fd, err := root.open(dir, unix.O_DIRECTORY)
	return place{fd, name}, err // fd is -1 after an error
}

// locateNew is locate for a file to be made. The root exists already.
func locateNew(root base, path string) (place, error) {
	p, err := locate(root, path)
	if errors.Is(err, errRoot) {
		return noPlace, unix.EEXIST
	}
	return p, err
}

// locateUnmounted is locate for a file to be removed or replaced, which must not be a mount
// point.
func locateUnmounted(root base, path string) (place, error) {
	p, err := locate(root, path)
	if err != nil {
		return noPlace, err
	}
	if err := p.checkUnmounted(); err != nil {
		p.close()
		return noPlace, err
	}
	return p, nil
}

// mostLinks is the kernel's limit of links in a path, path_resolution(7).
const mostLinks = 40

// locateTarget is locate for the file that a path leads to. It also returns the file, or nil
// if it does not exist.
//
// It follows a link in the last component itself, as the kernel would: a write renames a new
// file over the old one, which needs the folder and the name, and the kernel does not report
// to which name a path has led. Each step is resolved by the kernel, so that a wrong step
// leads to no other place than the guest's own link could.
func locateTarget(root base, path string) (place, *node, error) {
	for range mostLinks + 1 {
		p, err := locate(root, path)
		if err != nil {
			return noPlace, nil, err
		}
		n, err := lookup(base{p.dir, noLinks}, p.name, unix.O_NOFOLLOW)
		if err == unix.ENOENT {
			return p, nil, nil
		}
		if err == nil && n.kind() != unix.S_IFLNK {
			return p, n, nil
		}
		p.close()
		if err != nil {
			return noPlace, nil, err
		}
		text, err := readLink(n.fd, "")
		n.close()
		if err == nil {
			path, err = joinLink(path, text)
		}
		if err != nil {
			return noPlace, nil, err
		}
	}
	return noPlace, nil, unix.ELOOP
}

// joinLink returns the path that a link at path leads to. It does not clean it: the meaning
// of ".." depends on the folders before it, which the kernel resolves.
func joinLink(path, text string) (string, error) {
	if !strings.HasPrefix(text, "/") {
		text = path[:strings.LastIndexByte(path, '/')+1] + text
	}
	switch {
	case len(text) >= unix.PathMax:
		return "", unix.ENAMETOOLONG
	case strings.HasSuffix(text, "/"):
		return "", unix.EISDIR
	}
	return text, nil
}
