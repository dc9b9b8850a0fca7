package bench

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"

	"gaol/runtime"
)

// programs measures what takes long by itself: what a jail does to the speed of a
// program that is up.
func (m *measurer) programs(ctx context.Context) (failed error) {
	ample := map[Side]*runtime.NodeRuntime{}
	defer func() {
		for _, rt := range ample {
			failed = errors.Join(failed, rt.Close())
		}
	}()
	for _, side := range m.jailed() {
		rt, err := runtime.Create(ctx, ampleOptions(m.create(side)))
		if err != nil {
			return err
		}
		ample[side] = rt
	}
	for _, w := range workloads {
		name := w.what
		if m.options.Quick {
			const part = 8
			w.rounds /= part
			name += fmt.Sprintf(" (quick: 1/%d of its work)", part)
		}
		v, err := m.workload(ctx, w.program, ample)
		if err != nil {
			return err
		}
		m.add(againstBare(w.id, name, "ms", v))
	}
	return nil
}

// ampleOptions has limits that are not what is measured: Node's helper threads are
// as free as bare node's.
func ampleOptions(o runtime.Options) runtime.Options {
	o.Limits.CPUs = float64(max(2, goruntime.NumCPU()))
	o.Limits.Memory = 1 << 30
	o.Limits.Disk = 256 << 20
	return o
}

// workload gives the medians of the whole processes' times. A jail's output must be
// what bare node's first is.
func (m *measurer) workload(ctx context.Context, p program, ample map[Side]*runtime.NodeRuntime) (Values, error) {
	first, err := m.bare.output(ctx, p)
	if err != nil {
		return nil, err
	}
	p.stdout = string(first)
	once := func(side Side) error {
		if side == Bare {
			return m.bare.run(ctx, p)
		}
		return run(ctx, ample[side], p)
	}
	if err := m.turns(ctx, 1, once); err != nil { // unmeasured: it starts zygotes
		return nil, err
	}
	s := Samples{}
	err = m.turns(ctx, m.options.fewer(20), func(side Side) error {
		return s.of(side).time(func() error { return once(side) })
	})
	return s.percentiles(50), err
}
