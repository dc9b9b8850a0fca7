package hostfs

import (
	"errors"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/vfs"
)

// Mkdir makes a folder with the permissions in mode, whatever the host's umask is, in one
// that is there. That there is something at path, be it a link, is an error. Zero: 0o755.
func (f *FS) Mkdir(path string, mode fs.FileMode) error {
	bits, err := permissions(mode)
	if err != nil {
		return &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return f.at("mkdir", path, func(root int) error {
		p, err := locateNew(root, path)
		if err != nil {
			return err
		}
		defer p.close()
		return mkdir(p, bits)
	})
}

// MkdirAll makes a folder, and those above it that are missing, with the permissions in
// mode, whatever the host's umask is. It is no error if it is there. Zero: 0o755.
func (f *FS) MkdirAll(path string, mode fs.FileMode) error {
	bits, err := permissions(mode)
	if err != nil {
		return &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return f.at("mkdir", path, func(root int) error { return mkdirAll(root, path, bits) })
}

const folderMode = 0o755

func mkdirAll(root int, path string, bits uint32) error {
	n, err := lookup(root, path, false)
	if err == nil {
		defer n.close()
		if !n.isFolder() {
			return unix.ENOTDIR
		}
		return nil
	}
	if err != unix.ENOENT {
		return err
	}
	if err := mkdirAbove(root, path, bits); err != nil {
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
	if n, err = lookup(root, path, false); err != nil { // somebody was faster, or it is a link to nothing
		return unix.EEXIST
	}
	defer n.close()
	if !n.isFolder() {
		return unix.ENOTDIR
	}
	return nil
}

// mkdirAbove makes the folder that path is in.
func mkdirAbove(root int, path string, bits uint32) error {
	return mkdirAll(root, path[:max(strings.LastIndexByte(path, '/'), 1)], bits)
}

// mkdir makes a folder with those permissions; of none, with 0o755.
func mkdir(p place, bits uint32) error {
	if bits == 0 {
		bits = folderMode
	}
	if err := unix.Mkdirat(p.dir, p.name, bits); err != nil {
		return err
	}
	n, err := child(p.dir, p.name)
	if err != nil {
		return err
	}
	defer n.close()
	if !n.isFolder() || uint32(n.stat.Mode)&0o1777 == bits {
		return nil // replaced by now, or what was asked for
	}
	return n.chmod(bits)
}

// chmod changes the permissions of the node, which fchmod(2) does not where it was
// opened with O_PATH.
func (n *node) chmod(bits uint32) error { return unix.Chmod(n.link(), bits) }

// Chmod sets the permissions, and the sticky bit, of the file or folder that a path
// leads to.
func (f *FS) Chmod(path string, mode fs.FileMode) error {
	bits, err := permissions(mode)
	if err != nil {
		return &fs.PathError{Op: "chmod", Path: path, Err: err}
	}
	return f.at("chmod", path, func(root int) error {
		n, err := lookup(root, path, false)
		if err != nil {
			return err
		}
		defer n.close()
		if n.kind() != unix.S_IFREG && !n.isFolder() {
			return ErrSpecial
		}
		return n.chmod(bits)
	})
}

// Symlink makes a link at path with that text, which is for the guest to follow, and may
// be any but empty, 4,096 bytes or more, or with a NUL byte.
func (f *FS) Symlink(text, path string) error {
	return f.at("symlink", path, func(root int) error {
		if err := checkLink(text); err != nil {
			return err
		}
		p, err := locateNew(root, path)
		if err != nil {
			return err
		}
		defer p.close()
		return unix.Symlinkat(text, p.dir, p.name)
	})
}

func checkLink(text string) error {
	if text == "" || len(text) >= unix.PathMax || strings.ContainsRune(text, 0) {
		return errLink
	}
	return nil
}

// Rename moves what is at one path to another, over what is there if both are folders,
// that one empty, or neither is (rename(2)). Links are moved themselves. Both must be on
// one mount, see package vfs, or it fails with EXDEV.
func (f *FS) Rename(from, to string) error {
	if _, err := vfs.ParsePath(to); err != nil {
		return &fs.PathError{Op: "rename", Path: to, Err: errPath}
	}
	return f.at("rename", from, func(root int) error {
		old, err := locateFree(root, from)
		if err != nil {
			return err
		}
		defer old.close()
		target, err := locateFree(root, to)
		if err != nil {
			return pathError("rename", to, err)
		}
		defer target.close()
		return unix.Renameat(old.dir, old.name, target.dir, target.name)
	})
}

// locateNew is locate for what is to be made, which the root is already.
func locateNew(root int, path string) (place, error) {
	p, err := locate(root, path)
	if errors.Is(err, errRoot) {
		return nowhere, unix.EEXIST
	}
	return p, err
}

// locateFree is locate for what is to be taken away or replaced.
func locateFree(root int, path string) (place, error) {
	p, err := locate(root, path)
	if err != nil {
		return nowhere, err
	}
	if err := p.free(); err != nil {
		p.close()
		return nowhere, err
	}
	return p, nil
}
