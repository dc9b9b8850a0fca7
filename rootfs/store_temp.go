package rootfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// tempDir is a temporary folder on the store's file system. Its maker holds a lock in it
// while it lives.
type tempDir struct {
	dir  string
	lock *os.File
}

const tempLock = ".lock"

// makeTemp makes a temporary folder. It also removes those of processes that were killed.
func (s *Store) makeTemp(ctx context.Context) (*tempDir, error) {
	if err := s.makeDirs(); err != nil {
		return nil, err
	}
	// The store's lock keeps other processes from sweeping the folder before it is locked.
	guard, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	if err := s.sweepTemp(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.tmp(), "")
	if err != nil {
		return nil, err
	}
	lock, err := lockNow(filepath.Join(dir, tempLock), os.O_RDWR|os.O_CREATE, unix.LOCK_EX)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &tempDir{dir, lock}, nil
}

// sweepTemp removes the temporary folders of processes that were killed.
// Precondition: the store's lock is held.
func (s *Store) sweepTemp() error {
	entries, err := os.ReadDir(s.tmp())
	if err != nil {
		return err
	}
	for _, e := range entries {
		dir := filepath.Join(s.tmp(), e.Name())
		lock, err := lockNow(filepath.Join(dir, tempLock), os.O_RDWR, unix.LOCK_EX)
		switch {
		case errors.Is(err, errLocked):
			continue
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return err
		}
		err = os.RemoveAll(dir)
		if lock != nil {
			lock.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// path returns the host path of name in the folder.
func (t *tempDir) path(name string) string { return filepath.Join(t.dir, name) }

// Close removes the folder and its content.
func (t *tempDir) Close() error {
	// The lock is released last, so that no sweep meets a half-removed folder.
	return errors.Join(os.RemoveAll(t.dir), t.lock.Close())
}
