package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gaol/runtime"
)

// warmUp fills the page cache and starts the zygotes.
func (m *measurer) warmUp(ctx context.Context) error {
	const rounds = 3
	return m.turns(ctx, rounds, func(side Side) error { return m.runOn(ctx, side, hello) })
}

// runs measures a small program in a runtime that's there already.
func (m *measurer) runs(ctx context.Context) error {
	s := Samples{}
	err := m.turns(ctx, m.options.Samples, func(side Side) error {
		return s.of(side).time(func() error { return m.runOn(ctx, side, hello) })
	})
	if err != nil {
		return err
	}
	m.curve("bare node", Bare, s)
	for _, side := range m.jailed() {
		m.curve("run, "+string(side), side, s)
	}
	m.add(againstBare(runMedianID, "warm run, p50", "ms", s.percentiles(50)),
		againstBare(runTailID, "warm run, p99 against p99", "ms", s.percentiles(99)))
	return nil
}

// lifecycle measures a runtime's whole life, with one run, and its parts.
func (m *measurer) lifecycle(ctx context.Context) error {
	whole, created, ran, closed := Samples{}, Samples{}, Samples{}, Samples{}
	err := m.turns(ctx, m.options.fewer(2), func(side Side) error {
		if side == Bare {
			return whole.of(side).time(func() error { return m.bare.run(ctx, hello) })
		}
		return whole.of(side).time(func() error {
			return m.live(ctx, side, created.of(side), ran.of(side), closed.of(side))
		})
	})
	if err != nil {
		return err
	}
	for _, side := range m.jailed() {
		m.curve("Create + Run + Close, "+string(side), side, whole)
	}
	m.add(againstBare(lifecycleID, "Create + Run + Close", "ms", whole.percentiles(50)))
	for _, part := range []struct {
		id      ID
		name    string
		samples Samples
	}{{createID, "of it, Create", created}, {firstRunID, "of it, the first Run", ran}, {closeID, "of it, Close", closed}} {
		part.samples[Bare] = whole[Bare]
		m.add(againstBare(part.id, part.name, "ms", part.samples.percentiles(50)))
	}
	return nil
}

// live takes one sample of each part of a runtime's life.
func (m *measurer) live(ctx context.Context, side Side, created, ran, closed *Times) error {
	var rt *runtime.NodeRuntime
	err := created.time(func() (err error) {
		rt, err = runtime.Create(ctx, m.create(side))
		return err
	})
	if err != nil {
		return err
	}
	if err := ran.time(func() error { return run(ctx, rt, hello) }); err != nil {
		return errors.Join(err, rt.Close())
	}
	return closed.time(rt.Close)
}

// overtime measures how long after its timeout the Run of an endless loop returns.
func (m *measurer) overtime(ctx context.Context) error {
	const limit = 150 * time.Millisecond
	s := Samples{}
	for range m.options.fewer(10) {
		for _, side := range m.jailed() {
			began := time.Now()
			res, err := m.lasting[side].Run(ctx, "for (;;);", runtime.RunOptions{Timeout: limit})
			if err != nil {
				return err
			}
			if res.Cause != runtime.CauseTimeout {
				return fmt.Errorf("an endless loop ended with cause %q", res.Cause)
			}
			*s.of(side) = append(*s.of(side), time.Since(began)-limit)
		}
	}
	m.add(alone(overtimeID, "return after a timeout, p50", "ms", s.percentiles(50)))
	return nil
}
