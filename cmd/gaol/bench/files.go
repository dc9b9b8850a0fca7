package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"gaol/rootfs"
	"gaol/runtime"
	"gaol/vfs/hostfs"
)

// hostFiles measures the host's reads and writes in a live tree beside its own in
// memory.
func (m *measurer) hostFiles(ctx context.Context) (failed error) {
	const small, large = 1 << 10, 100 << 20
	live := map[Side]*runtime.NodeRuntime{}
	defer func() { failed = errors.Join(failed, closeAll(live)) }()
	for _, side := range m.jailed() {
		o := m.create(side)
		o.Limits.Disk = 3 * large // a file is written beside the old one
		rt, err := runtime.Create(ctx, o)
		if err != nil {
			return err
		}
		live[side] = rt
	}
	for _, f := range []struct {
		size  int
		what  string
		read  ID
		write ID
		n     int
	}{{small, "1 KB", readSmallID, writeSmallID, m.options.Samples}, {large, "100 MB", readLargeID, writeLargeID, m.options.fewer(40)}} {
		data := bytes.Repeat([]byte("x"), f.size)
		reads, writes := Samples{}, Samples{}
		err := m.turns(ctx, f.n, func(side Side) error {
			write, read := m.ownFile(live[side], data)
			return errors.Join(writes.of(side).time(write), reads.of(side).time(read))
		})
		if err != nil {
			return err
		}
		m.add(againstHost(f.read, "read of "+f.what+" by the host", reads), againstHost(f.write, "write of "+f.what+" by the host", writes))
	}
	return nil
}

// ownFile gives what writes and reads a file, as FS does or without it.
func (m *measurer) ownFile(rt *runtime.NodeRuntime, data []byte) (write, read func() error) {
	if rt == nil {
		path := filepath.Join(m.dir, "host-file")
		return func() error { return os.WriteFile(path, data, 0o644) },
			func() error { return sameLength(len(data))(os.ReadFile(path)) }
	}
	const path = "/workspace/host-file"
	return func() error { return rt.FS().WriteFile(path, data, hostfs.WriteOptions{}) },
		func() error { return readWhole(rt.FS(), path, len(data)) }
}

// readWhole reads a file that may be longer than what ReadFile returns.
func readWhole(f *hostfs.FS, path string, size int) error {
	if size <= 64<<20 {
		return sameLength(size)(f.ReadFile(path))
	}
	file, err := f.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	data := make([]byte, size+1)
	n := 0
	for n < len(data) && err == nil {
		var more int
		more, err = file.Read(data[n:])
		n += more
	}
	return sameLength(size)(data[:n], nil)
}

func sameLength(want int) func([]byte, error) error {
	return func(data []byte, err error) error {
		if err == nil && len(data) != want {
			err = fmt.Errorf("%d bytes, want %d", len(data), want)
		}
		return err
	}
}

// againstHost makes a figure of times that are told as multiples of the host's own.
func againstHost(id ID, name string, s Samples) Figure {
	f := againstBare(id, name, "ms", s.percentiles(50))
	f.Against = "the host's own files"
	return f
}

// snapshots measures beginning with a snapshot of many small files beside beginning
// empty, and file work on it beside bare node's in memory.
func (m *measurer) snapshots(ctx context.Context) (failed error) {
	files := 30_000
	if m.options.Quick {
		files = 1_000
	}
	s, store, err := m.snapshotOf(ctx, files)
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, store.Remove(s.ID)) }()
	empty, full := Samples{}, Samples{}
	for range m.options.fewer(4) {
		for _, side := range m.jailed() {
			o := m.create(side)
			err := createOnce(ctx, o, empty.of(side))
			o.Snapshot = s.ID
			if err = errors.Join(err, createOnce(ctx, o, full.of(side))); err != nil {
				return err
			}
		}
	}
	m.add(againstOwn(snapshotID, fmt.Sprintf("Create with a snapshot of %d small files, p50", files), "ms", full.percentiles(50), empty.percentiles(50), "Create without"))
	return m.filesOnSnapshot(ctx, s.ID)
}

func createOnce(ctx context.Context, o runtime.Options, t *Times) error {
	began := time.Now()
	rt, err := runtime.Create(ctx, o)
	if err != nil {
		return err
	}
	*t = append(*t, time.Since(began))
	return rt.Close()
}

// snapshotOf takes one of a runtime with as many files, in folders of a hundred, and one
// that is no other benchmark's: they would share it, and this one could not remove it.
func (m *measurer) snapshotOf(ctx context.Context, files int) (_ *runtime.Snapshot, _ *rootfs.Store, failed error) {
	o := m.create(m.jailed()[0])
	o.Limits.Disk, o.Limits.Inodes = 1<<30, int64(2*files)
	rt, err := runtime.Create(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	defer func() { failed = errors.Join(failed, rt.Close()) }()
	code := fmt.Sprintf(`import fs from 'node:fs';
		for (let i = 0; i < %d; i += 100) { fs.mkdirSync('d' + i); for (let j = i; j < i + 100; j++) fs.writeFileSync('d' + i + '/' + j, 'file ' + j) }
		fs.writeFileSync('own', %q)`, files, rand.Text())
	res, err := rt.Run(ctx, code, runtime.RunOptions{})
	if err != nil {
		return nil, nil, err
	}
	if res.ExitCode != 0 {
		return nil, nil, fmt.Errorf("%d files: %.300s", files, res.Stderr)
	}
	s, err := rt.Snapshot(ctx, runtime.SnapshotOptions{})
	if err != nil {
		return nil, nil, err
	}
	store, err := rootfs.Open(m.options.Create.Store)
	if err == nil {
		store, err = store.Snapshots()
	}
	return s, store, err
}

// filesOnSnapshot measures two programs whose files are an overlay's: a project's work,
// and what makes and removes files and does nothing else. The second has no bar: it is
// there to see what overlayfs takes for a call.
func (m *measurer) filesOnSnapshot(ctx context.Context, id string) (failed error) {
	ample := map[Side]*runtime.NodeRuntime{}
	defer func() { failed = errors.Join(failed, closeAll(ample)) }()
	for _, side := range m.jailed() {
		o := ampleOptions(m.create(side))
		o.Snapshot = id
		rt, err := runtime.Create(ctx, o)
		if err != nil {
			return err
		}
		ample[side] = rt
	}
	stress := workloadOf(filesID)
	stress.id, stress.what = overlayFilesID, "file calls alone"
	return m.each(ctx, []workload{project, stress}, ample, ", on a snapshot")
}
