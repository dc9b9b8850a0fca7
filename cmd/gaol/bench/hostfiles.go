package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gaol/runtime"
	"gaol/vfs/hostfs"
)

// hostFiles measures the host's reads and writes in a live tree, beside reads and writes
// of its own files in memory.
func (m *measurer) hostFiles(ctx context.Context) error {
	const length = 100 << 20
	data := bytes.Repeat([]byte("x"), length)
	return m.withRuntimes(ctx, func(o *runtime.Options) {
		o.Limits.Disk = 3 * length // WriteFile writes the new file before it removes the old one
	}, func(live runtimes) error {
		reads, writes := Samples{}, Samples{}
		err := m.turns(ctx, m.options.fewer(40), m.sides(), func(side Side) error {
			write, open := m.hostFile(live[side], data)
			return errors.Join(writes.of(side).time(write), reads.of(side).time(func() error { return readWhole(open, length) }))
		})
		if err != nil {
			return err
		}
		read := againstBare(readLargeID, "read of 100 MB by the host", "ms", reads.percentiles(50))
		write := againstBare(writeLargeID, "write of 100 MB by the host", "ms", writes.percentiles(50))
		read.Against, write.Against = "the host's own files", "the host's own files"
		m.add(read, write)
		return nil
	})
}

// hostFile returns functions that write and open a file: in rt, or without a sandbox if
// rt is nil.
func (m *measurer) hostFile(rt *runtime.NodeRuntime, data []byte) (write func() error, open func() (io.ReadCloser, error)) {
	if rt == nil {
		path := filepath.Join(m.dir, "host-file")
		return func() error { return os.WriteFile(path, data, 0o644) }, func() (io.ReadCloser, error) { return os.Open(path) }
	}
	const path = "/workspace/host-file"
	return func() error { return rt.FS().WriteFile(path, data, hostfs.WriteOptions{}) },
		func() (io.ReadCloser, error) { return rt.FS().Open(path) }
}

// readWhole reads a file into memory. FS.ReadFile would reject one of this length.
func readWhole(open func() (io.ReadCloser, error), length int) error {
	file, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	n, err := io.ReadFull(file, make([]byte, length+1))
	if n != length || !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%d bytes, want %d: %w", n, length, err)
	}
	return nil
}
