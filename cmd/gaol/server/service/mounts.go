package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
	"gaol/runtime/requestjson"
)

// accesses are the accesses of requests.
var accesses = map[string]runtime.Access{"": runtime.ReadOnly, "ro": runtime.ReadOnly, "rw": runtime.ReadWrite, "cow": runtime.CopyOnWrite}

// folders are open folders of the server's machine.
type folders []*os.File

func (f folders) close() {
	for _, folder := range f {
		folder.Close()
	}
}

// addMounts adds the mounts of the server's machine to the options. The options name them by their
// descriptors: a path may lead elsewhere by the time that it is mounted. The caller closes the folders
// after the sandbox is created, even if there is an error.
func (s *Service) addMounts(t *tenant.Tenant, tree requestjson.Tree, o *runtime.Options) (opened folders, err error) {
	ofHost := isOfHost(tree.NodeModules)
	set := s.settings.Load().Mounts
	switch {
	case set == nil:
		return nil, Refuse(Forbidden, "the server does not allow mounts: its settings have no mounts.base")
	case t.Peer == nil:
		return nil, Refuse(Forbidden, "a token is not a user of the server's machine, and may not mount its folders")
	case ofHost && !set.NodeModules:
		return nil, Refuse(Forbidden, "the server does not allow nodeModules of its machine: its setting mounts.nodeModules is not true")
	}
	open := func(path string, write bool) (source string, err error) {
		folder, err := OpenHostFolder(set.Base, path, t.Peer, write)
		if err != nil {
			return "", mountError(path, err)
		}
		opened = append(opened, folder)
		return "/proc/self/fd/" + strconv.Itoa(int(folder.Fd())), nil
	}
	o.MountUser = &runtime.MountUser{UID: int(t.Peer.UID), GID: int(t.Peer.GID)}
	for _, g := range t.Peer.Groups {
		o.MountUser.Groups = append(o.MountUser.Groups, int(g))
	}
	for _, m := range tree.Mounts {
		access := accesses[m.Access]
		source, err := open(m.Source, access == runtime.ReadWrite)
		if err != nil {
			return opened, err
		}
		o.Mounts = append(o.Mounts, runtime.Mount{Source: source, Target: m.Target, Access: access})
	}
	if ofHost {
		o.NodeModules, err = open(tree.NodeModules.HostPath, false)
	}
	return opened, err
}

// mountError returns the error for a folder that could not be opened. Only errors that the user would
// also get have details.
func mountError(path string, err error) error {
	switch {
	case errors.Is(err, ErrOutsideBase):
		return Refuse(Forbidden, "mount %q: %w", path, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return Refuse(Forbidden, "mount %q: you may not access it like this: %w", path, err)
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV):
		return Refuse(Forbidden, "mount %q: the path contains a link", path)
	}
	if _, ok := errors.AsType[*fs.PathError](err); !ok { // an error of the base has its path
		if errno, ok := errors.AsType[unix.Errno](err); ok {
			return Refuse(Invalid, "mount %q: %w", path, errno)
		}
	}
	return fmt.Errorf("mount %q: %w", path, err)
}

// addTrustedMounts adds the mounts of a trusted client to the options. As in the SDK, the guest acts as the
// owner of each folder.
func addTrustedMounts(tree requestjson.Tree, o *runtime.Options) error {
	absolute := func(path string) error { // the client may have another working directory
		if !filepath.IsAbs(path) {
			return Refuse(Invalid, "mount %q: want an absolute path", path)
		}
		return nil
	}
	for _, m := range tree.Mounts {
		if err := absolute(m.Source); err != nil {
			return err
		}
		o.Mounts = append(o.Mounts, runtime.Mount{Source: m.Source, Target: m.Target, Access: accesses[m.Access]})
	}
	if !isOfHost(tree.NodeModules) {
		return nil
	}
	o.NodeModules = tree.NodeModules.HostPath
	return absolute(o.NodeModules)
}

// isOwnSnapshot reports whether a snapshot in the store is one of this service's tenants.
func (s *Service) isOwnSnapshot(name string) bool {
	return strings.HasPrefix(name, allSnapshots) != s.trusted
}
