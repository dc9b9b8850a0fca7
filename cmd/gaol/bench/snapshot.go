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

// snapshots compares Create with a snapshot of many small files to Create without, and
// measures file work on the snapshot beside bare node's in memory.
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
	create := func(snapshot string) sampler {
		return func(side Side, t *Series) error {
			o := m.create(side)
			o.Snapshot = snapshot
			began := time.Now()
			rt, err := runtime.Create(ctx, o)
			if err != nil {
				return err
			}
			t.add(time.Since(began))
			return rt.Close()
		}
	}
	full, empty, err := m.pairs(ctx, m.options.fewer(4), create(s.ID), create(""))
	if err != nil {
		return err
	}
	m.add(againstOwn(snapshotID, fmt.Sprintf("Create with a snapshot of %d small files, p50", files), "ms", full.percentiles(50), empty.percentiles(50), "Create without"))
	return m.filesOnSnapshot(ctx, s.ID)
}

// snapshotOf takes a snapshot of a runtime with so many files, in folders of a hundred.
// A random file makes it different from other benchmarks': a shared snapshot could not be
// removed.
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

// filesOnSnapshot measures two programs on an overlay: a project's work, and one that only
// creates and removes files. The second has no bar: it shows overlayfs's own cost of a call.
func (m *measurer) filesOnSnapshot(ctx context.Context, id string) error {
	stress := workloads[len(workloads)-1]
	stress.id, stress.what = overlayFilesID, "file calls alone"
	return m.withRuntimes(ctx, func(o *runtime.Options) {
		raiseLimits(o)
		o.Snapshot = id
	}, func(all runtimes) error {
		return m.runWorkloads(ctx, []workload{project, stress}, all, ", on a snapshot")
	})
}
