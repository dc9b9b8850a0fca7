package jail

import (
	"slices"

	"gaol/jail/enter"
	"gaol/jail/mounts"
	"gaol/jail/procfs"
)

// Tree describes the file tree of a jail.
type Tree = mounts.Tree

// Place is a part of the tree.
type Place = mounts.Place

// File is a file to create in the tree.
type File = mounts.File

// Mount shows a folder or a file of the host in the tree.
type Mount = mounts.Mount

// Access is what a guest may do with a folder of the host.
type Access = mounts.Access

// The zero value allows the least.
const (
	ReadOnly    = mounts.ReadOnly
	CopyOnWrite = mounts.CopyOnWrite
	ReadWrite   = mounts.ReadWrite
)

// The ids of guest processes, as they see them.
const (
	GuestUID = mounts.GuestUID
	GuestGID = mounts.GuestGID
)

// Errors of mounts, see package mounts.
var (
	ErrNoIDMap    = mounts.ErrNoIDMap
	ErrNotInMount = mounts.ErrNotInMount
)

// CheckOwners returns an error that wraps ErrNoIDMap if guests would see the files of an
// image in the folder dir as those of uid 65534.
func CheckOwners(dir string) error { return mounts.CheckOwners(dir, firstID) }

// fullTree returns the spec's tree with what each jail has.
func (s *Spec) fullTree() Tree {
	t := s.Tree
	if len(s.Reaper) > 0 { // without its pid 1 there is no jail
		reaper := []Place{{Path: s.Reaper[0]}}
		t.Show, t.Exec = slices.Concat(t.Show, reaper), slices.Concat(t.Exec, reaper)
	}
	// No cgroup file system is mounted in a jail: libuv needs only these files of it to size
	// Node for the limits.
	t.Layer = slices.Clip(t.Layer)
	for path, text := range s.Limits.Files() {
		t.Layer = append(t.Layer, File{Path: path, Mode: 0o444, Data: []byte(text)})
	}
	t.Protected = []string{enter.Path, enter.Reaper}
	t.Proc = procfs.Config{Hostname: s.Hostname, Memory: s.Limits.Memory, CPUs: s.Limits.CPUs}
	return t
}
