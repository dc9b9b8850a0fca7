package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"

	"gaol/rootfs"
)

// ErrUnsupported is wrapped by errors that say that this machine can't hold a
// jail, or not with these options.
var ErrUnsupported = errors.ErrUnsupported

func privileged() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("needs root to make namespaces and cgroups: run it with sudo: %w", ErrUnsupported)
	}
	return nil
}

// holdImage finds the image, builds it if it is the default one and missing, and
// keeps it from being removed until the lease is closed.
func holdImage(ctx context.Context, o Options) (*rootfs.Image, *rootfs.Lease, error) {
	store, err := rootfs.Open(o.Store)
	if err != nil {
		return nil, nil, err
	}
	image, err := store.Ensure(ctx, o.Image, rootfs.BuildOptions{Progress: o.Progress})
	if err != nil {
		return nil, nil, err
	}
	lease, err := image.Hold()
	if err != nil {
		return nil, nil, err
	}
	return image, lease, nil
}
