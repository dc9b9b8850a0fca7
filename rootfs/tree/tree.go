package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// IDPrefix precedes the hex digits of an id.
const IDPrefix = "sha256:"

// Epoch is the modification time of every file in a sealed tree. It is the time that npm
// gives to the files it packs.
var Epoch = time.Date(1985, time.October, 26, 8, 15, 0, 0, time.UTC)

// worldWritable lists the folders with mode 1777, by their path in the tree.
var worldWritable = []string{"/tmp", "/var/tmp"}

// errKind rejects a tree with special files, or with files that have a set-id bit.
var errKind = errors.New("not a plain file, folder or link")

// Seal gives every file in the tree at root its final mode, owner and time. It returns the
// id of the tree and the total size of its files in bytes. The id is a hash over paths,
// types, modes, contents and link targets: two trees have the same id if a guest cannot
// distinguish them. Seal writes the text that it hashes to list, for [Compare].
func Seal(root string, list io.Writer) (id string, size int64, err error) {
	return walk(root, list, normalize)
}

// Sum returns the id and the size of a tree like [Seal], but leaves the tree unchanged.
func Sum(root string, list io.Writer) (id string, size int64, err error) {
	return walk(root, list, func(string, string, fs.DirEntry) error { return nil })
}

// walk calls before for each file, and writes and hashes the list.
func walk(root string, list io.Writer, before func(root, path string, e fs.DirEntry) error) (id string, size int64, err error) {
	sum := sha256.New()
	text := io.MultiWriter(sum, list)
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = before(root, path, e)
		}
		if err != nil {
			return err
		}
		n, err := writeEntry(text, root, path)
		size += n
		return err
	})
	return IDPrefix + hex.EncodeToString(sum.Sum(nil)), size, err
}

// ListID returns the id of the tree that has this list.
func ListID(list []byte) string {
	return fmt.Sprintf("%s%x", IDPrefix, sha256.Sum256(list))
}

// MixID returns the id of an image that consists of a tree with the id and of more, which
// is hashed as JSON. An empty value leaves the id unchanged.
func MixID(id string, more any) (string, error) {
	text, err := json.Marshal(more)
	if err != nil || string(text) == "{}" || string(text) == "null" {
		return id, err
	}
	return fmt.Sprintf("%s%x", IDPrefix, sha256.Sum256(append([]byte(id+"\n"), text...))), nil
}

// Usage counts what files take on disks: it has the number of links that were found of each file, by its device and
// inode.
type Usage map[[2]uint64]int64

// Add returns how many bytes the files below dir take on its disk, and how many of them would be free
// without these files. Holes take nothing. A file with several links counts once, and is
// freed if Add has found all links. Missing files, and folders of other file systems that are mounted
// below dir, do not count.
func (u Usage) Add(dir string) (taken, freed int64, err error) {
	var device uint64
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = e.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		s := info.Sys().(*syscall.Stat_t)
		if path == dir {
			device = s.Dev
		}
		if s.Dev != device && e.IsDir() {
			return fs.SkipDir
		}
		id, bytes := [2]uint64{s.Dev, s.Ino}, s.Blocks*512
		u[id]++
		if u[id] == 1 {
			taken += bytes
		}
		if u[id] == int64(s.Nlink) || e.IsDir() {
			freed += bytes
		}
		return nil
	})
	return taken, freed, err
}

// writeEntry writes the line of a file, folder or link. It returns the size of a regular file.
func writeEntry(w io.Writer, root, path string) (int64, error) {
	name, err := filepath.Rel(root, path)
	if err != nil {
		return 0, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	var size int64
	switch mode := info.Mode(); {
	case mode.IsDir(), mode&fs.ModeType == fs.ModeSymlink:
	case mode.IsRegular() && mode&(fs.ModeSetuid|fs.ModeSetgid) == 0:
		size = info.Size()
	default:
		return 0, &os.PathError{Op: "seal", Path: path, Err: errKind}
	}
	content, err := content(path, info)
	if err != nil {
		return 0, err
	}
	// Quoted, so that a name with a line break cannot imitate another entry.
	_, err = fmt.Fprintf(w, "%s %q %q\n", info.Mode(), name, content)
	return size, err
}

// content returns the hash of a regular file, the target of a link, and "" for others.
func content(path string, info fs.FileInfo) (string, error) {
	switch {
	case info.Mode()&fs.ModeType == fs.ModeSymlink:
		return os.Readlink(path)
	case info.Mode().IsRegular():
		return contentSum(path)
	}
	return "", nil
}

func contentSum(path string) (string, error) {
	// If the file has been replaced since, no link is followed, and no pipe is waited for.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// normalize sets the mode of a folder, and the owner and the time of any file. As root, it
// sets the owner to root, even where new files inherit the group of their folder.
func normalize(root, path string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	if st := info.Sys().(*syscall.Stat_t); os.Geteuid() == 0 && (st.Uid != 0 || st.Gid != 0) {
		err = os.Lchown(path, 0, 0)
	}
	if err == nil && e.IsDir() {
		mode := fs.FileMode(0o755)
		if slices.Contains(worldWritable, strings.TrimPrefix(path, root)) {
			mode = fs.ModeSticky | 0o777
		}
		err = os.Chmod(path, mode)
	}
	if err != nil {
		return err
	}
	at := unix.NsecToTimespec(Epoch.UnixNano())
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "utimes", Path: path, Err: err}
	}
	return nil
}
