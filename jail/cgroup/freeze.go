package cgroup

import (
	"context"
	"fmt"
	"time"
)

// SetFrozen stops all processes of the group, and returns when they have stopped, or lets them continue. Kill also
// kills stopped processes. If the group does not exist, SetFrozen does nothing.
func (g *Group) SetFrozen(ctx context.Context, frozen bool) error {
	wait := backoff{least: 50 * time.Microsecond, most: 4 * time.Millisecond}
	err := g.use(func() error {
		g.wasFrozen.Store(true) // a later group with its directories must not begin frozen
		return g.on.setFrozen(g.path, frozen)
	})
	for freezing := frozen; err == nil && freezing; {
		freezing, err = read(g, "state", g.on.isFreezing)
		if err == nil && freezing {
			err = wait.sleep(ctx)
		}
	}
	if err = ignoreGone(err); err != nil {
		return fmt.Errorf("cgroup: freeze %s: %w", g.path, err)
	}
	return nil
}
