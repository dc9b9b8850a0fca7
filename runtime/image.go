package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// forImage gives the settings what they take from an imported image.
func (s settings) forImage(o Options, image *rootfs.Image) (settings, error) {
	if image.Imported == nil {
		return s, nil
	}
	s.unfit, s.node, s.libraries = image.CanRun(), image.Imported.NodePath, image.Imported.Libraries
	if _, own := o.Env["PATH"]; !own && image.Path() != "" {
		s.env = maps.Clone(s.env) // a pool's runtimes begin with the same settings
		s.env["PATH"] = image.Path()
	}
	if err := s.permit(o.Permissions); err != nil {
		return settings{}, optionError("Permissions", "%w", err)
	}
	return s, nil
}

// needNode refuses what an imported image can't do, or not with its Node.
func (s settings) needNode() error {
	if s.unfit != nil {
		return fmt.Errorf("%w: %w", s.unfit, ErrUnsupported)
	}
	return nil
}
