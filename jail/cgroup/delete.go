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

// deleteTimeout bounds how long Delete waits for killed processes to exit. Until then the
// kernel returns EBUSY.
const deleteTimeout = time.Second

// Delete removes the group and its descendants in every hierarchy. None of them may hold
// a process. Deleting a missing group is not an error.
func (g *Group) Delete() error {
	err := g.use(func() error { return removeAll(append(g.on.dirs(g.path), g.on.otherDirs(g.path)...)) })
	if errors.Is(err, errDeleted) {
		return nil
	}
	return err
}

// Sweep kills and deletes the group's children except those for whose names keep returns
// true. It continues after an error and returns all errors. A missing group has no children.
func (g *Group) Sweep(ctx context.Context, keep func(name string) bool) error {
	var errs []error
	for _, dir := range g.Dirs() { // a crash may have left a group in only one hierarchy
		entries, err := os.ReadDir(dir)
		errs = append(errs, ignoreGone(err))
		for _, e := range entries {
			if e.IsDir() && !keep(e.Name()) {
				child := &Group{path: filepath.Join(g.path, e.Name()), on: g.on}
				errs = append(errs, child.Kill(ctx), child.Delete())
			}
		}
	}
	return errors.Join(errs...)
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

// remove replaces the library's Delete, which walks each hierarchy before it removes
// anything, tries to unlink every file, and sleeps for at least 10 ms if the group is
// busy.
func remove(ctx context.Context, dir string) error {
	wait := backoff{least: 100 * time.Microsecond, most: 10 * time.Millisecond}
	for {
		err := rmdir(dir)
		if err != unix.EBUSY {
			return err
		}
		// A group with descendants is busy, too.
		dirs, treeErr := tree(dir)
		if treeErr != nil {
			return treeErr
		}
		for _, d := range slices.Backward(dirs) {
			err = rmdir(d)
		}
		if err != unix.EBUSY { // the last one is dir itself
			return err
		}
		if wait.sleep(ctx) != nil {
			return err
		}
	}
}

func rmdir(dir string) error {
	for {
		if err := unix.Rmdir(dir); err != unix.EINTR {
			return ignoreGone(err)
		}
	}
}

// tree returns dir and the groups below it, parents first, without those that are gone.
func tree(dir string) ([]string, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return nil, ignoreGone(&os.PathError{Op: "stat", Path: dir, Err: err})
	}
	dirs := []string{dir}
	if st.Nlink == 2 { // kernfs counts links as other file systems do: two, and one for each child
		return dirs, nil
	}
	entries, err := os.ReadDir(dir)
	if ignoreGone(err) != nil {
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
