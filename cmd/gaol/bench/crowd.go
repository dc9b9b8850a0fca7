package bench

import (
	"context"
	"errors"
	"fmt"

	"gaol/runtime"
)

// crowd are runtimes that are live and do nothing.
type crowd []*runtime.NodeRuntime

// resize makes or closes runtimes until there are n.
func (c *crowd) resize(ctx context.Context, n int, o runtime.Options) error {
	for len(*c) < n {
		rt, err := runtime.Create(ctx, o)
		if err != nil {
			return err
		}
		*c = append(*c, rt)
	}
	var failed error
	for _, rt := range (*c)[n:] {
		failed = errors.Join(failed, rt.Close())
	}
	*c = (*c)[:n]
	return failed
}

// crowds measures a run beside other live runtimes: with one alone before and after
// the crowds, as they take long to make and the machine may have changed.
func (m *measurer) crowds(ctx context.Context) (failed error) {
	if err := m.closeLasting(); err != nil { // they are live, too
		return err
	}
	few, many, note := 100, 1000, ""
	if m.options.Quick {
		few, many, note = 5, 20, " (quick)"
	}
	o := m.options.Create
	o.Launcher = m.options.Launchers[0] // no matter which: they run nothing
	var others crowd
	defer func() { failed = errors.Join(failed, others.resize(ctx, 0, o)) }()
	samples := map[int]Samples{1: {}, few: {}, many: {}}
	for _, live := range []int{1, few, many, 1} {
		if err := others.resize(ctx, live-1, o); err != nil {
			return err
		}
		if err := m.amongOthers(ctx, samples[live]); err != nil {
			return err
		}
	}
	one := samples[1].percentiles(50)
	for _, c := range []struct {
		id   ID
		live int
	}{{fewLiveID, few}, {manyLiveID, many}} {
		name := fmt.Sprintf("warm run with %d live runtimes%s, p50 against that with 1", c.live, note)
		m.add(againstOwn(c.id, name, "ms", samples[c.live].percentiles(50), one, "1 live runtime"))
	}
	return nil
}

// amongOthers takes the samples in runtimes made for it, one at a time: it adds
// but one to those that are live.
func (m *measurer) amongOthers(ctx context.Context, s Samples) error {
	const apart = 5
	for range apart {
		for _, side := range m.jailed() {
			if err := m.sampleFresh(ctx, side, m.options.fewer(4*apart), s.of(side)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sampleFresh makes a runtime and takes n samples of its runs but the first.
func (m *measurer) sampleFresh(ctx context.Context, side Side, n int, s *Times) (failed error) {
	rt, err := runtime.Create(ctx, m.create(side))
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, rt.Close()) }()
	if err := run(ctx, rt, hello); err != nil {
		return err
	}
	for range n {
		if err := s.time(func() error { return run(ctx, rt, hello) }); err != nil {
			return err
		}
	}
	return nil
}
