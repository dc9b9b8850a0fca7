package runtime

import "context"

// park has the process of the first run forked ahead.
func (rt *NodeRuntime) park(ctx context.Context) error {
	c := rt.opts.command(rt.opts.limits)
	rt.guard.apply(&c, rt.opts)
	c.Zygote = rt.forks.of(0).pool
	parked, err := rt.jail.Park(ctx, c)
	if err == nil {
		rt.parked.Store(parked)
	}
	return err
}

// fresh reports whether a runtime that nobody has used is as it was made.
func (rt *NodeRuntime) fresh() bool {
	parked := rt.parked.Load()
	return rt.jail.Alive() && (parked == nil || parked.Alive())
}
