package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"gaol/rootfs"
	"gaol/runtime"
)

// createOnSnapshot compares Create with a snapshot of many small files to Create without.
func (m *measurer) createOnSnapshot(ctx context.Context) (s, base Samples, err error) {
	id, err := m.snapshotOfFiles(ctx)
	if err != nil {
		return nil, nil, err
	}
	create := func(snapshot string) sampler {
		return func(side Side) (float64, error) {
			o := m.create(side)
			o.Snapshot = snapshot
			began := time.Now()
			rt, err := runtime.Create(ctx, o)
			if err != nil {
				return 0, err
			}
			took := time.Since(began)
			return milliseconds(took), rt.Close()
		}
	}
	return sample(ctx, m.options.fewer(4), m.options.Jailed, create(id), create(""))
}

// snapshotOfFiles returns the id of a snapshot of many small files, in folders of a
// hundred. The first call takes it. A random file makes it different from other
// benchmarks': a shared snapshot could not be removed.
func (m *measurer) snapshotOfFiles(ctx context.Context) (id string, failed error) {
	if m.snapshot != nil {
		return m.snapshot.ID, nil
	}
	files := m.options.work(30_000)
	o := m.create(m.options.Jailed[0])
	o.Limits.Disk, o.Limits.Inodes = 1<<30, int64(2*files)
	rt, err := runtime.Create(ctx, o)
	if err != nil {
		return "", err
	}
	defer func() { failed = errors.Join(failed, rt.Close()) }()
	code := fmt.Sprintf(`import fs from 'node:fs';
		for (let i = 0; i < %d; i += 100) { fs.mkdirSync('d' + i); for (let j = i; j < i + 100; j++) fs.writeFileSync('d' + i + '/' + j, 'file ' + j) }
		fs.writeFileSync('own', %q)`, files, rand.Text())
	res, err := rt.Run(ctx, code, runtime.RunOptions{})
	if err != nil {
		return "", err
	}
	if res.ExitCode != 0 {
		return "", fmt.Errorf("%d files: %.300s", files, res.Stderr)
	}
	if m.snapshot, err = rt.Snapshot(ctx, runtime.SnapshotOptions{}); err != nil {
		return "", err
	}
	return m.snapshot.ID, nil
}

func (m *measurer) removeSnapshot() error {
	if m.snapshot == nil {
		return nil
	}
	store, err := rootfs.Open(m.options.Create.Store)
	if err == nil {
		store, err = store.Snapshots()
	}
	if err != nil {
		return err
	}
	return store.Remove(m.snapshot.ID)
}
