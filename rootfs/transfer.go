package rootfs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"gaol/rootfs/download"
	"gaol/rootfs/layer"
	"gaol/rootfs/tree"
	"gaol/vfs/hostfs"
)

// Send writes the image to w, for [Store.Receive] of another store of the same kind.
func (i *Image) Send(w io.Writer) error {
	if err := json.NewEncoder(w).Encode(i); err != nil {
		return err
	}
	return i.Tar(w)
}

// Tar writes all files of the image to w, as a tar archive.
func (i *Image) Tar(w io.Writer) error {
	lease, err := i.Hold()
	if err != nil {
		return err
	}
	defer func() { _ = lease.Close() }()
	files, err := filesBelow(i.Root(), math.MaxInt32)
	if err != nil {
		return err
	}
	defer func() { _ = files.Close() }()
	_, err = files.Tar(w, "/", hostfs.TarOptions{Bytes: math.MaxInt64, Left: func(s hostfs.Skip) error { return fmt.Errorf("%s: %w", s.Path, s.Err) }})
	return err
}

// filesBelow opens a tree of at most some entries.
func filesBelow(root string, entries int) (*hostfs.FS, error) {
	dir, err := os.Open(root)
	if err != nil {
		return nil, err
	}
	files, err := hostfs.New(dir, hostfs.Options{Limits: hostfs.Limits{Entries: entries, Depth: math.MaxInt32}})
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return files, nil
}

// maxDescription bounds the description of an image that another store sends, in bytes.
const maxDescription = 4 << 20

// Receive adds an image that [Image.Send] has written, with a name unless that is empty. An image whose content does not have the ID
// is refused with [ErrDigest].
func (s *Store) Receive(ctx context.Context, id, name string, l layer.Limits, r io.Reader) (*Image, error) {
	in := bufio.NewReaderSize(r, maxDescription)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	var sent Image
	if err := json.Unmarshal(line, &sent); err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	b := &build{store: s, report: download.NewReporter(nil)}
	b.image = Image{Node: sent.Node, NPM: sent.NPM, Arch: sent.Arch, Packages: sent.Packages, Imported: sent.Imported}
	if name != "" {
		b.plan.names = []string{name}
	}
	return b.add(ctx, id, sumOf(s), func(root string) error {
		l = l.WithDefaults()
		files, err := filesBelow(root, int(l.Entries))
		if err != nil {
			return err
		}
		defer func() { _ = files.Close() }()
		_, err = files.Untar(layer.NewReader(ctx, in, math.MaxInt64), "/", hostfs.UntarOptions{Bytes: l.Bytes, Entries: int(l.Entries)})
		return err
	})
}

// sumOf returns the function of package tree that computes the ids of a store. Images have uniform modes and times.
func sumOf(s *Store) func(root string, list io.Writer) (id string, size int64, err error) {
	if s.kind == snapshotKind {
		return tree.Sum
	}
	return tree.Seal
}
