package mounts

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Place is a part of the guest's tree.
type Place struct {
	Path string // guest path
	Tree bool   // the folder and everything below it; otherwise this one file
}

func (p Place) contains(path string) bool {
	return path == p.Path || p.Tree && isBelow(path, p.Path)
}

// isIn reports whether path is dir or inside it.
func isIn(path, dir string) bool { return path == dir || isBelow(path, dir) }

// isBelow reports whether path is inside dir.
func isBelow(path, dir string) bool {
	return dir == "/" && path != "/" || strings.HasPrefix(path, dir+"/")
}

// isAmong reports whether the longest place that contains path is in list, and not in
// the list of exceptions.
func isAmong(path string, list, except []Place) bool {
	longest := func(list []Place) (n int) {
		for _, p := range list {
			if p.contains(path) {
				n = max(n, len(p.Path))
			}
		}
		return n
	}
	n := longest(list)
	return n > 0 && n >= longest(except)
}

func (t *Tree) hides(path string) bool { return isAmong(path, t.Hide, t.Show) }

// noExec reports whether programs at path can't be executed.
func (t *Tree) noExec(path string) bool { return isAmong(path, t.NoExec, t.Exec) }

// leadsToShown reports whether a hidden folder contains a shown place, or is or contains
// a guest folder.
func (t *Tree) leadsToShown(dir string) bool {
	return slices.ContainsFunc(t.Show, func(p Place) bool { return isBelow(p.Path, dir) }) ||
		slices.ContainsFunc(t.Dirs, func(d string) bool { return isIn(d, dir) })
}

// setFlags sets the flags that the tree asks for on the mount at a guest path, and on
// the mounts below it.
func (t *Tree) setFlags(path string) error {
	if len(t.NoExec)+len(t.ReadOnly) == 0 {
		return nil
	}
	mount := t.mountAt(path)
	isReadOnly := mount != nil && mount.Access == ReadOnly
	var attr unix.MountAttr
	switch {
	case t.noExec(path):
		attr.Attr_set = unix.MOUNT_ATTR_NOEXEC
	case !isBelow(path, "/dev"): // nothing in /dev can be executed, whatever Exec says
		attr.Attr_clr = unix.MOUNT_ATTR_NOEXEC
	}
	switch {
	case isAmong(path, t.ReadOnly, t.Writable):
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	case isAmong(path, t.Writable, nil) && !isReadOnly: // which only the host may change
		attr.Attr_clr |= unix.MOUNT_ATTR_RDONLY
	}
	return setMountAttr(unix.AT_FDCWD, filepath.Join(Root, path), unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW, attr)
}

// mountAt returns the innermost mount of a host folder that contains path, or nil.
func (t *Tree) mountAt(path string) *Mount {
	for i := range slices.Backward(t.Mounts) { // outer ones come first, see Prepare
		if m := &t.Mounts[i]; isIn(path, m.Target) {
			return m
		}
	}
	return nil
}
