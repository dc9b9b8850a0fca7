package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"

	"gaol/rootfs"
)

func checkRoot() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("needs root to make namespaces and cgroups: run it with sudo: %w", ErrUnsupported)
	}
	return nil
}

// leaseImage finds the image, or builds it if it is the default one and missing. It cannot be
// removed until the lease is closed.
func leaseImage(ctx context.Context, o Options) (*rootfs.Image, *rootfs.Lease, error) {
	store, err := rootfs.Open(o.Store)
	if err != nil {
		return nil, nil, err
	}
	image, err := store.Ensure(ctx, o.Image, rootfs.BuildOptions{Progress: o.Progress})
	if errors.Is(err, rootfs.ErrNoStore) {
		err = &OptionError{"Store", err}
	}
	if err != nil {
		return nil, nil, err
	}
	lease, err := image.Hold()
	if err != nil {
		return nil, nil, err
	}
	return image, lease, nil
}

// forImage completes the settings by the properties of an imported image.
func (s settings) forImage(o Options, image *rootfs.Image) (settings, error) {
	if image.Imported == nil {
		return s, nil
	}
	s.noNode, s.node, s.libraries = image.CanRun(), image.Imported.NodePath, image.Imported.Libraries
	if _, own := o.Env["PATH"]; !own && image.Path() != "" {
		s.env = maps.Clone(s.env) // a pool shares the settings among its runtimes
		s.env["PATH"] = image.Path()
	}
	if err := s.setPermissions(o.Permissions); err != nil {
		return settings{}, optionError("Permissions", "%w", err)
	}
	return s, nil
}
