package rootfs

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"path"

	"gaol/jail/enter"
	"gaol/jail/zygote"
	"gaol/rootfs/layer"
	"gaol/rootfs/sharedlib"
)

// addJailFiles adds what guests and the jail need to an imported tree: the mount points of
// the jail, and the programs that start one. Those must be gaol's own: a process enters a
// jail by executing the entry program with the host's rights.
func (m *importer) addJailFiles(ctx context.Context) (err error) {
	t, err := layer.Open(m.root(), layer.Limits{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for _, dir := range mountPoints {
		if err := t.EnsureFolder(dir); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/proc", "/dev", path.Dir(enter.Path)} {
		if err := t.EmptyFolder(dir); err != nil {
			return err
		}
	}
	if err := m.findNode(t); err != nil {
		return err
	}
	for _, add := range []func(context.Context) error{m.addEnter, m.addZygote, m.addCommand, m.addReaper} {
		if err := add(ctx); err != nil {
			return err
		}
	}
	if m.image.Imported.Libc == "glibc" {
		m.image.Imported.Zygote, err = canLoadZygote(t)
	}
	return err
}

// canLoadZygote reports whether the image's C library has all symbol versions that the
// zygote's shared object was linked to.
func canLoadZygote(t *layer.Tree) (bool, error) {
	object, err := t.OpenFile(zygote.Path)
	if err != nil {
		return false, err
	}
	defer object.Close()
	ours, err := elf.NewFile(object)
	if err != nil {
		return false, fmt.Errorf("%s: %w", zygote.Path, err)
	}
	var needs []elf.DynamicVersionNeed
	if ours.SectionByType(elf.SHT_GNU_VERNEED) != nil {
		if needs, err = ours.DynamicVersionNeeds(); err != nil {
			return false, fmt.Errorf("%s: %w", zygote.Path, err)
		}
	}
	libc, err := readLibc(t)
	if err != nil || !bytes.Contains(libc, []byte("\x00GLIBC_2.")) {
		return false, err
	}
	for _, library := range needs {
		for _, version := range library.Needs {
			if !bytes.Contains(libc, []byte("\x00"+version.Dep+"\x00")) {
				return false, nil
			}
		}
	}
	return true, nil
}

// maxLibc bounds how many bytes of an image's C library are read. It is several times the
// size of any existing one.
const maxLibc = 16 << 20

// readLibc reads the image's C library; nil if it has none. The names of its symbol versions
// are searched in its bytes, because package elf does not bound what it reads for a hostile
// file.
func readLibc(t *layer.Tree) ([]byte, error) {
	for _, dir := range sharedlib.DefaultDirs {
		f, err := t.OpenFile(path.Join(dir, "libc.so.6"))
		if err != nil {
			continue
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, maxLibc))
	}
	return nil, nil
}
