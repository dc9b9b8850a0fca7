package jail

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gaol/jail/enter"
)

// makeGuestDirs makes the folders in the upper layer, where their owner covers
// that of a folder of the same name in the image. What is above them belongs to the
// guest's root.
func makeGuestDirs(s *Spec, firstID int) error {
	for _, d := range s.Dirs {
		if err := checkGuestDir(d); err != nil {
			return err
		}
		path := filepath.Join(stageUpper, d)
		if err := mkdirAsImage(filepath.Dir(d), firstID); err != nil {
			return err
		}
		if err := mkdirAll(path, firstID); err != nil {
			return err
		}
		if slices.Contains(s.Sealed, d) {
			continue
		}
		if err := os.Chown(path, firstID+GuestUID, firstID+GuestGID); err != nil {
			return err
		}
	}
	return nil
}

var errGuard = errors.New("holds the program that puts the filter on, and so can't be the guest's")

// checkGuestDir refuses a folder whose owner could replace the entry program, and
// one that would hide a file or a link of the image.
func checkGuestDir(dir string) error {
	if err := checkFree(dir); err != nil {
		return err
	}
	for p := dir; p != "/"; p = filepath.Dir(p) {
		for _, layer := range []string{stageLayer, stageImage} {
			info, err := os.Lstat(filepath.Join(layer, p))
			if err == nil && !info.IsDir() {
				err = &os.PathError{Op: "make", Path: p, Err: syscall.ENOTDIR}
			}
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// checkFree refuses a place from which the entry program could be replaced.
func checkFree(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return &os.PathError{Op: "make", Path: path, Err: syscall.EINVAL}
	}
	for _, guard := range []string{enter.Path, enter.Reaper} {
		if path == "/" || strings.HasPrefix(guard+"/", path+"/") {
			return &os.PathError{Op: "own", Path: path, Err: errGuard}
		}
	}
	return nil
}

// mkdirAsImage makes a folder and those above it in the upper layer. Those that the
// image has stay as they are there: /tmp, above all, is for everyone.
func mkdirAsImage(dir string, root int) error {
	if dir == "/" {
		return nil
	}
	if err := mkdirAsImage(filepath.Dir(dir), root); err != nil {
		return err
	}
	path := filepath.Join(stageUpper, dir)
	if _, err := os.Lstat(path); err == nil {
		return nil // another of the guest's
	}
	info, err := os.Lstat(filepath.Join(stageImage, dir))
	if errors.Is(err, os.ErrNotExist) {
		return mkdirAll(path, root)
	}
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	return errors.Join(os.Mkdir(path, 0o700), os.Lchown(path, int(owner.Uid), int(owner.Gid)), os.Chmod(path, info.Mode()))
}

// mkdirAll makes folders of the guest's root that all may enter, whatever the host's
// umask is.
func mkdirAll(path string, root int) error {
	if path == "." {
		return nil
	}
	if err := mkdirAll(filepath.Dir(path), root); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		if os.IsExist(err) {
			return nil
		}
		return err
	}
	return errors.Join(os.Chmod(path, 0o755), os.Lchown(path, root, root))
}
