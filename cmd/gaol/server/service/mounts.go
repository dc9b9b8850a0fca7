package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/tenant"
	"gaol/internal/kernfile"
	"gaol/jail/mounts"
	"gaol/runtime"
	"gaol/runtime/requestjson"
)

// accesses are the accesses of requests.
var accesses = map[string]runtime.Access{"": runtime.ReadOnly, "ro": runtime.ReadOnly, "rw": runtime.ReadWrite, "cow": runtime.CopyOnWrite}

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
	o.MountUser = &t.Peer.MountUser
	return func(path string, write bool) (source string, err error) {
		folder, err := OpenHostFolder(set.Base, path, o.MountUser, write)
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

// ErrOutsideBase is the error for a path that is not below the base.
var ErrOutsideBase = errors.New("it is not below the folder whose content the server lets users mount")

// OpenHostFolder opens a folder below base as a user could: the user must be allowed to search all folders from
// base to it, to read it, and with write also to change it. No component of the path may be a link. The
// path is relative to base, or absolute. The caller closes the folder, which is opened with O_PATH.
func OpenHostFolder(base, path string, user *runtime.MountUser, write bool) (*os.File, error) {
	if filepath.IsAbs(path) {
		var err error
		if path, err = filepath.Rel(base, path); err != nil {
			return nil, ErrOutsideBase
		}
	}
	if path = filepath.Clean(path); path == "." || !filepath.IsLocal(path) {
		return nil, ErrOutsideBase
	}
	dir, err := os.OpenFile(base, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var folder *os.File
	// The thread ends afterwards, so that no other code runs with the user's rights.
	err = kernfile.OnThread(func() (err error) {
		if err = becomeUser(user); err == nil {
			folder, err = openHostFolder(dir, path, write)
		}
		return err
	})
	return folder, err
}

func openHostFolder(dir *os.File, path string, write bool) (*os.File, error) {
	folder, err := mounts.OpenBeneath(dir, path, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	need := uint32(unix.R_OK | unix.X_OK)
	if write {
		need |= unix.W_OK
	}
	if err := unix.Faccessat(int(folder.Fd()), "", need, unix.AT_EMPTY_PATH|unix.AT_EACCESS); err != nil {
		folder.Close()
		return nil, err
	}
	return folder, nil
}

// becomeUser gives the calling thread the user's rights over files, and takes its capabilities.
//
// Preconditions: the thread is locked, and ends afterwards.
func becomeUser(user *runtime.MountUser) error {
	// These functions of package unix change the calling thread only.
	if err := unix.Setgroups(user.Groups); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if _, _, err := kernfile.SetFileIDs(user.UID, user.GID); err != nil {
		return err
	}
	// Of root's, too: a caller with user 0 can be in a container, without capabilities.
	return kernfile.DropCapabilities()
}
