package jail

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Place is a part of the guest's tree.
type Place struct {
	Path string // guest path
	Tree bool   // the folder and all below it; otherwise this one file
}

func (p Place) holds(path string) bool {
	return path == p.Path || p.Tree && isBelow(path, p.Path)
}

// isBelow reports whether path is inside dir.
func isBelow(path, dir string) bool {
	return dir == "/" && path != "/" || strings.HasPrefix(path, dir+"/")
}

// isOf reports whether the longest of the places that hold path is of the first list.
func isOf(path string, list, butNot []Place) bool {
	longest := func(list []Place) (n int) {
		for _, p := range list {
			if p.holds(path) {
				n = max(n, len(p.Path))
			}
		}
		return n
	}
	n := longest(list)
	return n > 0 && n >= longest(butNot)
}

func (s *Spec) reaper() string {
	if len(s.Reaper) == 0 {
		return ""
	}
	return s.Reaper[0]
}

func (s *Spec) hides(path string) bool { return isOf(path, s.Hide, s.Show) }

// leads reports whether something is to be seen below a hidden folder.
func (s *Spec) leads(dir string) bool {
	for _, p := range s.Show {
		if isBelow(p.Path, dir) {
			return true
		}
	}
	for _, d := range s.Dirs {
		if d == dir || isBelow(d, dir) {
			return true
		}
	}
	return false
}

// noExec reports whether programs can't be executed from there.
func (s *Spec) noExec(path string) bool { return isOf(path, s.NoExec, s.Exec) }

// setFlags gives a mount of a path of the guest's, and those below it, the flags that
// the spec asks for, where it asks for any.
func (s *Spec) setFlags(path string) error {
	if len(s.NoExec)+len(s.ReadOnly) == 0 {
		return nil
	}
	var attr unix.MountAttr
	switch {
	case s.noExec(path):
		attr.Attr_set = unix.MOUNT_ATTR_NOEXEC
	case !isBelow(path, "/dev"): // where nothing is executed, whatever the spec says
		attr.Attr_clr = unix.MOUNT_ATTR_NOEXEC
	}
	switch {
	case isOf(path, s.ReadOnly, s.Writable):
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	case isOf(path, s.Writable, nil) && !s.isInReadOnly(path):
		attr.Attr_clr |= unix.MOUNT_ATTR_RDONLY
	}
	return unix.MountSetattr(unix.AT_FDCWD, filepath.Join(stageRoot, path), unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW, &attr)
}

// isInReadOnly reports whether a path is the host's to change only, whatever Writable has.
func (s *Spec) isInReadOnly(path string) bool {
	access, longest := ReadWrite, -1
	for _, m := range s.Mounts {
		if (path == m.Target || isBelow(path, m.Target)) && len(m.Target) > longest {
			access, longest = m.Access, len(m.Target)
		}
	}
	return access == ReadOnly
}
