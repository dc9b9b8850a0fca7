package rootfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// scratch is a temporary folder of the store, on one file system with what it
// becomes. Its lock says that its maker lives.
type scratch struct {
	dir  string
	lock *os.File
}

const scratchLock = ".lock"

// scratch makes a temporary folder, and removes those whose maker is gone.
func (s *Store) scratch(ctx context.Context) (*scratch, error) {
	if err := s.make(); err != nil {
		return nil, err
	}
	// Under the store's lock, or a sweep could meet a folder that has no lock yet.
	guard, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	if err := s.sweep(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.tmp(), "")
	if err != nil {
		return nil, err
	}
	lock, err := lockNow(filepath.Join(dir, scratchLock), os.O_RDWR|os.O_CREATE, unix.LOCK_EX)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &scratch{dir, lock}, nil
}

// sweep removes the temporary folders that killed processes left.
// Precondition: the store's lock is held.
func (s *Store) sweep() error {
	left, err := os.ReadDir(s.tmp())
	if err != nil {
		return err
	}
	for _, e := range left {
		dir := filepath.Join(s.tmp(), e.Name())
		lock, err := lockNow(filepath.Join(dir, scratchLock), os.O_RDWR, unix.LOCK_EX)
		switch {
		case errors.Is(err, errLocked):
			continue
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return err
		}
		err = os.RemoveAll(dir)
		if lock != nil {
			_ = lock.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// path returns the host path of name in the folder.
func (w *scratch) path(name string) string { return filepath.Join(w.dir, name) }

// Close removes the folder and what it holds.
func (w *scratch) Close() error {
	// The lock goes last, so that no sweep finds the folder half removed.
	return errors.Join(os.RemoveAll(w.dir), w.lock.Close())
}
