package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/rootfs"
)

// storedImages are the images of the tests' store at one time. Nothing may write to them
// later: an OCI runtime, for example, makes missing mount points in a root that it can write
// to, and all tests would then see them.
type storedImages struct {
	since time.Time
	roots map[string]identity
}

// listImages lists the images of now. It uses the folder temp as a clock.
func listImages(temp string) (storedImages, error) {
	s := storedImages{roots: map[string]identity{}}
	store, err := rootfs.Open(os.Getenv(StoreVar))
	if err != nil {
		return s, err
	}
	all, err := store.List()
	if err != nil && !errors.Is(err, rootfs.ErrNoStore) {
		return s, err
	}
	for _, i := range all {
		id, err := identify(i.Root())
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // removed since it was listed
			return s, err
		}
		s.roots[i.Root()] = id
	}
	s.since, err = tick(temp)
	return s, err
}

// changed lists the files of the images whose status has changed since. The kernel sets that
// time with all changes of content, mode, owner and attributes, and of a folder's entries, and
// programs cannot set it. Images that were removed are not listed, even if they were stored
// again.
func (s storedImages) changed() ([]string, error) {
	var found []string
	for root, before := range s.roots {
		if now, err := identify(root); err != nil || now != before {
			continue
		}
		err := walkStatus(unix.AT_FDCWD, root, root, func(path string, changed time.Time) {
			if changed.After(s.since) {
				found = append(found, fmt.Sprintf("%q", path))
			}
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return found, err
		}
	}
	slices.Sort(found)
	return found, nil
}

// walkStatus calls visit with the path and the status time of name in the folder dir, and of
// all files below it. Looking up names in open folders takes half the time of filepath.WalkDir,
// for each package of tests.
func walkStatus(dir int, name, path string, visit func(string, time.Time)) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	visit(path, time.Unix(st.Ctim.Unix()))
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	folder := os.NewFile(uintptr(fd), path)
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	for _, name := range names {
		err = errors.Join(err, walkStatus(fd, name, path+"/"+name, visit))
	}
	return err
}

// checkUnchanged returns an error that names the first changed files.
func (s storedImages) checkUnchanged() error {
	found, err := s.changed()
	if err != nil || len(found) == 0 {
		return err
	}
	const shown = 20
	return fmt.Errorf("%d files changed in the image store:\n  %s", len(found), strings.Join(found[:min(len(found), shown)], "\n  "))
}

// identity distinguishes a folder from one that is made later, which may get its inode.
type identity struct {
	inode uint64
	born  unix.StatxTimestamp
}

func identify(path string) (identity, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return identity{}, &os.PathError{Op: "statx", Path: path, Err: err}
	}
	return identity{st.Ino, st.Btime}, nil
}

// tick waits until the clock of the file systems, which advances every few milliseconds, has
// another time, and returns the one before: all later changes have a later time.
func tick(temp string) (before time.Time, err error) {
	for {
		if err := os.Chmod(temp, 0o700); err != nil { // its mode from os.MkdirTemp
			return before, err
		}
		info, err := os.Stat(temp)
		if err != nil {
			return before, err
		}
		now := statusTime(info)
		if !before.IsZero() && !now.Equal(before) {
			return before, nil
		}
		before = now
		time.Sleep(time.Millisecond)
	}
}

// statusTime returns the time of the last change of a file or its inode.
func statusTime(info fs.FileInfo) time.Time {
	return time.Unix(info.Sys().(*syscall.Stat_t).Ctim.Unix())
}
