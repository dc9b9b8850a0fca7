package service

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/tenant"
	"gaol/jail/kernfile"
	"gaol/jail/mounts"
)

// ErrOutsideBase is the error for a path that is not below the base.
var ErrOutsideBase = errors.New("it is not below the folder whose content the server lets users mount")

// OpenHostFolder opens a folder below base as a user could: the user must be allowed to search all folders from
// base to it, to read it, and with write also to change it. No component of the path may be a link. The
// path is relative to base, or absolute. The caller closes the folder, which is opened with O_PATH.
func OpenHostFolder(base, path string, user *tenant.Peer, write bool) (*os.File, error) {
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
func becomeUser(user *tenant.Peer) error {
	groups := make([]int, len(user.Groups))
	for i, g := range user.Groups {
		groups[i] = int(g)
	}
	// These functions of package unix change the calling thread only.
	if err := unix.Setgroups(groups); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	uid, gid := int(user.UID), int(user.GID)
	_, _ = unix.SetfsgidRetGid(gid) // the check below sees a failure
	_, _ = unix.SetfsuidRetUid(uid)
	gotGID, _ := unix.SetfsgidRetGid(-1) // -1 is not an id, and changes nothing
	gotUID, _ := unix.SetfsuidRetUid(-1)
	if gotUID != uid || gotGID != gid {
		return errors.New("setfsuid: without effect")
	}
	// Of root's, too: a caller with user 0 can be in a container, without capabilities.
	none := [2]unix.CapUserData{}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}
