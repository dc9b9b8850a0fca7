package rootfs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// epoch is the time of every file, the one that npm gives to what it packs.
var epoch = time.Date(1985, time.October, 26, 8, 15, 0, 0, time.UTC)

// shared are the folders that anybody may write to, in the guest's words.
var shared = map[string]bool{"tmp": true, "var/tmp": true}

// errKind is what a tree is refused for that holds more than files, folders
// and symbolic links, or a file that changes the ids of who runs it.
var errKind = errors.New("not a plain file, folder or link")

// seal gives all that lies in the tree at root its final mode, owner and time,
// and returns the id of the image and the bytes of its files. The id covers
// paths, kinds, modes, contents and the targets of links: two trees that a
// guest can't tell apart have the same.
func seal(root string) (id string, size int64, err error) {
	sum := sha256.New()
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			if err := os.Chmod(path, folderMode(name)); err != nil {
				return err
			}
		}
		n, err := record(sum, path, name)
		size += n
		return errors.Join(err, settle(path))
	})
	return idPrefix + hex.EncodeToString(sum.Sum(nil)), size, err
}

// mixID returns the id of an image that is more than its tree. A value that is empty
// as JSON leaves the id as it is.
func mixID(id string, more any) (string, error) {
	text, err := json.Marshal(more)
	if err != nil || string(text) == "{}" || string(text) == "null" {
		return id, err
	}
	sum := sha256.Sum256(append([]byte(id+"\n"), text...))
	return idPrefix + hex.EncodeToString(sum[:]), nil
}

func folderMode(name string) fs.FileMode {
	if shared[name] {
		return fs.ModeSticky | 0o777
	}
	return 0o755
}

// record adds one entry to the sum, and returns its size if it is a file.
func record(sum hash.Hash, path, name string) (int64, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	var size int64
	content := ""
	switch mode := info.Mode(); {
	case mode.IsDir():
	case mode&fs.ModeType == fs.ModeSymlink:
		content, err = os.Readlink(path)
	case mode.IsRegular() && mode&(fs.ModeSetuid|fs.ModeSetgid) == 0:
		size = info.Size()
		content, err = fileSum(path)
	default:
		err = &os.PathError{Op: "seal", Path: path, Err: errKind}
	}
	if err != nil {
		return 0, err
	}
	// Quoted, so that no name can look like the end of its line.
	_, err = fmt.Fprintf(sum, "%s %q %q\n", info.Mode(), name, content)
	return size, err
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
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

// settle sets the owner and the time of one entry. Where root builds, the owner
// is root, even in a store whose folders hand down their group.
func settle(path string) error {
	if os.Geteuid() == 0 {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return &os.PathError{Op: "lstat", Path: path, Err: err}
		}
		if st.Uid != 0 || st.Gid != 0 {
			if err := os.Lchown(path, 0, 0); err != nil {
				return err
			}
		}
	}
	at := unix.NsecToTimespec(epoch.UnixNano())
	err := unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return &os.PathError{Op: "utimes", Path: path, Err: err}
	}
	return nil
}
