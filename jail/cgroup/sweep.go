package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Sweep kills and deletes the children of the group at parent except those for whose
// names keep returns true. It continues after an error and returns all errors. A missing
// parent has no children.
func Sweep(ctx context.Context, parent string, keep func(name string) bool) error {
	on, err := machineBackend()
	if err != nil {
		return err
	}
	if err := checkPath(parent); err != nil {
		return err
	}
	return sweep(ctx, on, parent, keep)
}

func sweep(ctx context.Context, on backend, parent string, keep func(string) bool) error {
	names, err := children(on, parent)
	if err != nil {
		return fmt.Errorf("cgroup: sweep %s: %w", parent, err)
	}
	var errs []error
	for name := range names {
		if keep(name) {
			continue
		}
		g := &Group{path: filepath.Join(parent, name), on: on}
		errs = append(errs, g.Kill(ctx), g.Delete())
	}
	return errors.Join(errs...)
}

// children returns the children in any hierarchy: a crash may have left a group in only
// one of them.
func children(on backend, parent string) (map[string]bool, error) {
	names := map[string]bool{}
	for _, d := range on.dirs(parent) {
		entries, err := os.ReadDir(d)
		if ignoreGone(err) != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() {
				names[e.Name()] = true
			}
		}
	}
	return names, nil
}
