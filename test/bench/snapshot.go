package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"gaol/cmd/gaol/bench"
	"gaol/rootfs"
	"gaol/runtime"
)

// createOnSnapshot compares Create with a snapshot of many small files to Create without.
func (x *fixtures) createOnSnapshot(ctx context.Context, m *bench.Measurer) (s, base bench.Samples, err error) {
	id, err := x.snapshotOfFiles(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	create := func(snapshot string) bench.Sampler {
		return func(side bench.Side) (float64, error) {
			o := m.Create(side)
			o.Snapshot = snapshot
			began := time.Now()
			rt, err := runtime.Create(ctx, o)
			if err != nil {
				return 0, err
			}
			took := time.Since(began)
			return bench.Milliseconds(took), rt.Close()
		}
	}
	return compared(ctx, m.Options.Fewer(4), m, create(id), create(""))
}

// snapshotOfFiles returns the id of a snapshot of many small files, in folders of a
// hundred. The first call takes it. A random file makes it different from other
// benchmarks': a shared snapshot could not be removed.
func (x *fixtures) snapshotOfFiles(ctx context.Context, m *bench.Measurer) (id string, failed error) {
	if x.snapshot != nil {
		return x.snapshot.ID, nil
	}
	files := x.work(30_000)
	o := m.Create(m.Options.Jailed[0])
	o.Limits.Disk, o.Limits.Files = 1<<30, int64(2*files)
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
	if x.snapshot, err = rt.Snapshot(ctx, runtime.SnapshotOptions{}); err != nil {
		return "", err
	}
	return x.snapshot.ID, nil
}

func (x *fixtures) removeSnapshot(name string) error {
	if x.snapshot == nil {
		return nil
	}
	store, err := rootfs.Open(name)
	if err == nil {
		store, err = store.Snapshots()
	}
	if err != nil {
		return err
	}
	_, err = store.Remove(x.snapshot.ID)
	return err
}
