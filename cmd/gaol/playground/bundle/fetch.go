package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"gaol/rootfs/download"
	"gaol/rootfs/npm"
	"gaol/rootfs/tree"
)

const (
	retryPause = 2 * time.Second
	stall      = time.Minute
	atOnce     = 8 // downloads
)

// install unpacks packages into the folder dir. Those that are not in the folder downloads are
// downloaded, and kept there.
func install(ctx context.Context, list []dependency, downloads, dir string) error {
	if err := os.MkdirAll(downloads, 0o755); err != nil {
		return err
	}
	announce(list, downloads)
	client, err := npm.NewClient(npm.Options{Pause: retryPause, Stall: stall})
	if err != nil {
		return err
	}
	defer client.Close()
	into, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = into.Close() }()
	temp, err := os.MkdirTemp(downloads, "temp-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, d := range list {
		group.Go(func() error {
			if err := installOne(ctx, client, d, downloads, temp, into); err != nil {
				return fmt.Errorf("install %s: %w", d, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func installOne(ctx context.Context, client *npm.Client, d dependency, downloads, temp string, into *tree.Tree) error {
	f, err := client.Tarball(ctx, d.Package, downloads, temp, download.NewReporter(nil))
	if err != nil {
		return err
	}
	defer f.Close()
	return npm.Unpack(ctx, f, into, func(name string) string { return path.Join(d.folder, name) })
}

// announce says that packages must be downloaded.
func announce(list []dependency, downloads string) {
	for _, d := range list {
		if _, err := os.Stat(filepath.Join(downloads, d.Integrity)); errors.Is(err, fs.ErrNotExist) {
			fmt.Printf("download the packages of the playground's editor (1 MB) from the npm registry, to %s\n", downloads)
			return
		}
	}
}
