package bench

import (
	"context"
	"fmt"
	goruntime "runtime"

	"gaol/runtime"
)

// programs measures programs that take long: how a jail changes the speed of a program
// that is running.
func (m *measurer) programs(ctx context.Context) error {
	return m.withRuntimes(ctx, raiseLimits, func(all runtimes) error { return m.runWorkloads(ctx, workloads, all, "") })
}

// runWorkloads measures the requested ones of list, and appends where to their names.
func (m *measurer) runWorkloads(ctx context.Context, list []workload, all runtimes, where string) error {
	for _, w := range list {
		if !m.wants(w.id) {
			continue
		}
		w, name := m.scaled(w)
		v, err := m.workload(ctx, w.program, all)
		if err != nil {
			return err
		}
		m.add(againstBare(w.id, name+where, "ms", v))
	}
	return nil
}

// scaled reduces the work if Options.Quick is set, and adds that to the name.
func (m *measurer) scaled(w workload) (workload, string) {
	if !m.options.Quick {
		return w, w.what
	}
	const part = 8
	w.rounds /= part
	return w, fmt.Sprintf("%s (quick: 1/%d of its work)", w.what, part)
}

// raiseLimits raises limits so that they do not affect the measurement: Node's helper
// threads are as free as bare node's.
func raiseLimits(o *runtime.Options) {
	o.Limits.CPUs = float64(max(2, goruntime.NumCPU()))
	o.Limits.Memory = 1 << 30
	o.Limits.Disk = 256 << 20
}

// workload returns the medians of the times of whole processes. A jail's output must be
// that of bare node's first process.
func (m *measurer) workload(ctx context.Context, p program, all runtimes) (Values, error) {
	first, err := m.bare.output(ctx, p)
	if err != nil {
		return nil, err
	}
	p.stdout = string(first)
	once := func(side Side) error {
		if side == Bare {
			return m.bare.run(ctx, p)
		}
		return run(ctx, all[side], p)
	}
	if err := m.turns(ctx, 1, m.sides(), once); err != nil { // not measured: it starts zygotes
		return nil, err
	}
	s, err := m.times(ctx, m.options.fewer(20), m.sides(), once)
	return s.percentiles(50), err
}
