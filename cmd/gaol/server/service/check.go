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
// is missing, or if this machine cannot make a jail of an isolation that requests may name. It makes one of each,
// and closes it.
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
	var failed []error
	for _, i := range s.Settings().AllIsolations() {
		o := runtime.Options{Image: image, Store: s.store, CgroupParent: s.tenants.parent, Launcher: runtime.LauncherExec}
		isolate(&o, i)
		rt, err := s.create(ctx, o)
		if err == nil {
			err = errors.Join(ctx.Err(), rt.Close())
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("isolation %s: %w", i.Name, err))
		}
	}
	return errors.Join(failed...)
}
