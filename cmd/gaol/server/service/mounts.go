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

// addMounts adds the mounts of the server's machine to the options. The caller closes the folders after the sandbox is
// created, even if there is an error.
func (s *Service) addMounts(t *tenant.Tenant, tree requestjson.Tree, o *runtime.Options) (opened folders, err error) {
	open := absolute
	if !s.trusted {
		if open, err = s.mounter(t, tree, o, &opened); err != nil {
			return nil, err
		}
	}
	for _, m := range tree.Mounts {
		access := accesses[m.Access]
		source, err := open(m.Source, access == runtime.ReadWrite)
		if err != nil {
			return opened, err
		}
		o.Mounts = append(o.Mounts, runtime.Mount{Source: source, Target: m.Target, Access: access})
	}
	if isOfHost(tree.NodeModules) {
		o.NodeModules, err = open(tree.NodeModules.HostPath, false)
	}
	return opened, err
}

// absolute checks a folder of a trusted client, which may have another working directory. As in the SDK, the guest acts as
// the owner of the folder.
func absolute(path string, _ bool) (source string, err error) {
	if !filepath.IsAbs(path) {
		return "", Refuse(Invalid, "mount %q: want an absolute path", path)
	}
	return path, nil
}

// mounter returns a function that opens a folder for a tenant and adds it to opened. The options name folders by their
// descriptors: a path may lead elsewhere by the time that it is mounted.
func (s *Service) mounter(t *tenant.Tenant, tree requestjson.Tree, o *runtime.Options, opened *folders) (open func(path string, write bool) (source string, err error), err error) {
	set := s.settings.Load().Mounts
	switch {
	case set == nil:
		return nil, Refuse(Forbidden, "the server does not allow mounts: its settings have no mounts.base")
	case t.Peer == nil:
		return nil, Refuse(Forbidden, "a token is not a user of the server's machine, and may not mount its folders")
	case isOfHost(tree.NodeModules) && !set.NodeModules:
		return nil, Refuse(Forbidden, "the server does not allow nodeModules of its machine: its setting mounts.nodeModules is not true")
	}
	o.MountUser = &runtime.MountUser{UID: int(t.Peer.UID), GID: int(t.Peer.GID)}
	for _, g := range t.Peer.Groups {
		o.MountUser.Groups = append(o.MountUser.Groups, int(g))
	}
	return func(path string, write bool) (source string, err error) {
		folder, err := OpenHostFolder(set.Base, path, t.Peer, write)
		if err != nil {
			return "", mountError(path, err)
		}
		*opened = append(*opened, folder)
		return "/proc/self/fd/" + strconv.Itoa(int(folder.Fd())), nil
	}, nil
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

// isOwnSnapshot reports whether a snapshot in the store is one of this service's tenants.
func (s *Service) isOwnSnapshot(name string) bool {
	return strings.HasPrefix(name, allSnapshots) != s.trusted
}
