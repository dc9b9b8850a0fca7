package bench

import (
	"context"
	"errors"
	"fmt"

	"gaol/runtime"
)

// manyLive measures a run beside many live runtimes, which run nothing. It measures the run
// alone both before and after, because the machine may change while they are created.
func (m *measurer) manyLive(ctx context.Context) error {
	if err := m.closeLasting(); err != nil { // they would be live, too
		return err
	}
	many, note := 1000, ""
	if m.options.Quick {
		many, note = 20, " (quick)"
	}
	alone, beside := Samples{}, Samples{}
	err := m.sampleFresh(ctx, alone)
	if err == nil {
		err = m.amongIdle(ctx, many-1, func() error { return m.sampleFresh(ctx, beside) })
	}
	if err == nil {
		err = m.sampleFresh(ctx, alone)
	}
	if err == nil {
		name := fmt.Sprintf("warm run with %d live runtimes%s, p50 against that with 1", many, note)
		m.add(againstOwn(manyLiveID, name, "ms", beside.percentiles(50), alone.percentiles(50), "1 live runtime"))
	}
	return err
}

// amongIdle calls do while n runtimes are live.
func (m *measurer) amongIdle(ctx context.Context, n int, do func() error) (failed error) {
	for range n {
		rt, err := runtime.Create(ctx, m.create(m.jailed()[0])) // any launcher: they run nothing
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, rt.Close()) }()
	}
	return do()
}

// sampleFresh takes samples in new runtimes, of which only one at a time is live.
func (m *measurer) sampleFresh(ctx context.Context, s Samples) error {
	const runtimes = 5 // for each side
	return m.turns(ctx, runtimes, m.jailed(), func(side Side) (failed error) {
		rt, err := runtime.Create(ctx, m.create(side))
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, rt.Close()) }()
		err = run(ctx, rt, hello) // not measured: the first run is slower
		for range m.options.fewer(4 * runtimes) {
			if err == nil {
				err = s.of(side).time(func() error { return run(ctx, rt, hello) })
			}
		}
		return err
	})
}
