package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gaol/rootfs"
	"gaol/runtime"
)

// Check returns an error if the service cannot run programs: if the image of sandboxes that name none
// is missing, or if this machine cannot make a jail. It makes one, and closes it.
func (s *Service) Check(ctx context.Context) error {
	image := defaultImage
	if allowed := s.Settings().Images; len(allowed) > 0 && !slices.Contains(allowed, image) {
		image = allowed[0]
	}
	store, err := rootfs.Open(s.store)
	if err != nil {
		return err
	}
	if _, err := store.Lookup(image); err != nil {
		return fmt.Errorf("image %s: %w", image, err)
	}
	rt, err := s.create(ctx, runtime.Options{Image: image, Store: s.store, CgroupParent: s.tenants.parent, Launcher: runtime.LauncherExec})
	if err != nil {
		return err
	}
	return errors.Join(ctx.Err(), rt.Close())
}
