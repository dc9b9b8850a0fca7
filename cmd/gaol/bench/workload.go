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
	defer func() { failed = errors.Join(failed, closeAll(ample)) }()
	for _, side := range m.jailed() {
		rt, err := runtime.Create(ctx, ampleOptions(m.create(side)))
		if err != nil {
			return err
		}
		ample[side] = rt
	}
	return m.each(ctx, workloads, ample, "")
}

// each adds those workloads that are wanted. where ends their names.
func (m *measurer) each(ctx context.Context, list []workload, ample map[Side]*runtime.NodeRuntime, where string) error {
	for _, w := range list {
		if !m.wants(w.id) {
			continue
		}
		w, name := m.scaled(w)
		v, err := m.workload(ctx, w.program, ample, m.bare.run)
		if err != nil {
			return err
		}
		m.add(againstBare(w.id, name+where, "ms", v))
	}
	return nil
}

// scaled does less work where that was asked for, and says so in the name.
func (m *measurer) scaled(w workload) (workload, string) {
	if !m.options.Quick {
		return w, w.what
	}
	const part = 8
	w.rounds /= part
	return w, fmt.Sprintf("%s (quick: 1/%d of its work)", w.what, part)
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
func (m *measurer) workload(ctx context.Context, p program, ample map[Side]*runtime.NodeRuntime, bare func(context.Context, program) error) (Values, error) {
	first, err := m.bare.output(ctx, p)
	if err != nil {
		return nil, err
	}
	p.stdout = string(first)
	once := func(side Side) error {
		if side == Bare {
			return bare(ctx, p)
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
