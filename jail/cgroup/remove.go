package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// deleteTimeout bounds how long Delete waits for processes that have been killed
// and are not quite gone: until then the kernel says EBUSY.
const deleteTimeout = time.Second

// Delete removes the group and its descendants in every hierarchy. None may hold
// a process. A group that is missing is no error.
func (g *Group) Delete() error {
	err := g.use(func() error { return removeAll(append(g.on.dirs(g.path), g.on.otherDirs(g.path)...)) })
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}

func removeAll(dirs []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
	defer cancel()
	var errs []error
	for _, d := range dirs {
		if err := remove(ctx, d); err != nil {
			errs = append(errs, fmt.Errorf("cgroup: delete %s: %w", d, err))
		}
	}
	return errors.Join(errs...)
}

// remove is not left to the library, whose Delete walks each hierarchy before it
// removes anything, tries to unlink every file, and sleeps for 10 ms at least
// when the group is busy.
func remove(ctx context.Context, dir string) error {
	wait := backoff{least: 100 * time.Microsecond, most: 10 * time.Millisecond}
	for {
		err := rmdir(dir)
		if err != unix.EBUSY {
			return err
		}
		// Descendants make it busy, too.
		dirs, treeErr := tree(dir)
		if treeErr != nil {
			return treeErr
		}
		for _, d := range slices.Backward(dirs) {
			err = rmdir(d)
		}
		if err != unix.EBUSY { // the last one was dir itself
			return err
		}
		if wait.sleep(ctx) != nil {
			return err
		}
	}
}

func rmdir(dir string) error {
	_, err := ignoringEINTR(func() (int, error) { return 0, unix.Rmdir(dir) })
	if err == unix.ENOENT || err == unix.ENODEV {
		return nil
	}
	return err
}

// tree lists dir and the groups below it, parents first. What is gone is left out.
func tree(dir string) ([]string, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return nil, gone(&os.PathError{Op: "stat", Path: dir, Err: err})
	}
	dirs := []string{dir}
	if st.Nlink == 2 { // kernfs counts links as disks do: two, and one for each child
		return dirs, nil
	}
	entries, err := os.ReadDir(dir)
	if gone(err) != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		below, err := tree(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, below...)
	}
	return dirs, nil
}
