package hostfs

import (
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// Mkdir makes a folder in an existing one. Its permissions are mode, 0o755 if zero,
// whatever the host's umask is. It fails if path exists, even as a link.
func (f *FS) Mkdir(path string, mode fs.FileMode) error {
	return f.onPlace("mkdir", path, locateNew, func(p place) error {
		bits, err := permissions(mode, folderMode)
		if err != nil {
			return err
		}
		return mkdir(p, bits)
	})
}

// MkdirAll makes a folder and its missing parents. Their permissions are mode, 0o755 if
// zero, whatever the host's umask is. An existing folder is not an error.
func (f *FS) MkdirAll(path string, mode fs.FileMode) error {
	return f.at("mkdir", path, func(root base) error {
		bits, err := permissions(mode, folderMode)
		if err != nil {
			return err
		}
		return mkdirAll(root, path, bits)
	})
}

const folderMode = 0o755

func mkdirAll(root base, path string, bits uint32) error {
	err := checkFolder(root, path)
	if err != unix.ENOENT {
		return err
	}
	if err := mkdirParent(root, path, bits); err != nil {
		return err
	}
	p, err := locate(root, path)
	if err != nil {
		return err
	}
	defer p.close()
	if err := mkdir(p, bits); err != unix.EEXIST {
		return err
	}
	if err := checkFolder(root, path); err == nil || err == unix.ENOTDIR { // made by another process meanwhile
		return err
	}
	return unix.EEXIST // a dangling link
}

// checkFolder returns ENOTDIR if path does not lead to a folder.
func checkFolder(root base, path string) error {
	return onNode(root, path, 0, func(n *node) error {
		if !n.isFolder() {
			return unix.ENOTDIR
		}
		return nil
	})
}

// mkdirParent makes the folder that path is in.
func mkdirParent(root base, path string, bits uint32) error {
	return mkdirAll(root, path[:max(strings.LastIndexByte(path, '/'), 1)], bits)
}

// mkdir makes a folder with these permissions.
func mkdir(p place, bits uint32) error {
	if err := unix.Mkdirat(p.dir, p.name, bits); err != nil {
		return err
	}
	return onChild(p.dir, p.name, func(n *node) error {
		if !n.isFolder() || uint32(n.stat.Mode)&0o1777 == bits {
			return nil // already replaced by the guest, or not affected by the umask
		}
		return n.chmod(bits)
	})
}

// Chmod sets the permissions and the sticky bit of a file or folder. It follows links.
func (f *FS) Chmod(path string, mode fs.FileMode) error {
	return f.onNode("chmod", path, 0, func(n *node) error {
		bits, err := permissions(mode, 0)
		if err != nil {
			return err
		}
		if n.kind() != unix.S_IFREG && !n.isFolder() {
			return ErrSpecial
		}
		return n.chmod(bits)
	})
}
