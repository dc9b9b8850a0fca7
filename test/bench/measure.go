package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"gaol/rootfs"
	"gaol/runtime"
)

// Options says what is measured and how often. A zero field takes its default.
type Options struct {
	// Rounds is how many samples are taken of each time: default 80, which is
	// enough for a 95th percentile that four samples are longer than.
	Rounds int

	// Create is what the measured runtimes are made with. Its image is that of
	// bare node as well.
	Create runtime.Options
}

const defaultRounds = 80

// slices is how often throughput is measured at each number of clients. One slice
// takes as long as several rounds.
func (o *Options) slices() int { return max(3, o.Rounds/10) }

// Report is what was measured.
type Report struct {
	Bare     Times // starts of bare node, to the end of the process
	Create   Times
	FirstRun Times // the first run of a runtime
	LaterRun Times // any other run
	Close    Times
	Whole    Times // Create, one run and Close together
	Overtime Times // how long after its timeout an endless loop's Run returned
	Clients  []Throughput
	Idle     Memory
}

// Ratio compares a percentile of t with the same one of bare node: 2 is twice as
// long. At the 95th it says more about the machine's other users than about gaol.
func (r *Report) Ratio(t Times, p int) float64 {
	return float64(t.Percentile(p)) / float64(r.Bare.Percentile(p))
}

// Measure measures. It takes half a minute by default. The image must be in its
// store or be the default one.
func Measure(ctx context.Context, o Options) (*Report, error) {
	r, err := measure(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return r, nil
}

func measure(ctx context.Context, o Options) (_ *Report, failed error) {
	if o.Rounds == 0 {
		o.Rounds = defaultRounds
	}
	dir, err := os.MkdirTemp("", "gaol-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { failed = errors.Join(failed, os.RemoveAll(dir)) }()
	bare, err := findBareNode(ctx, dir, o.Create)
	if err != nil {
		return nil, err
	}
	m := &measurer{bare: bare, options: o}
	if m.lasting, err = runtime.Create(ctx, o.Create); err != nil {
		return nil, err
	}
	defer func() { failed = errors.Join(failed, m.lasting.Close()) }()
	return &m.report, m.all(ctx)
}

func findBareNode(ctx context.Context, dir string, o runtime.Options) (*bareNode, error) {
	store, err := rootfs.Open(o.Store)
	if err != nil {
		return nil, err
	}
	image, err := store.Ensure(ctx, o.Image, rootfs.BuildOptions{Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	return newBareNode(dir, image)
}

// measurer fills in a report.
type measurer struct {
	options Options
	bare    *bareNode
	lasting *runtime.NodeRuntime // of the later runs
	report  Report
}

func (m *measurer) all(ctx context.Context) error {
	const warmUp = 3
	for range warmUp {
		if err := m.round(ctx); err != nil {
			return err
		}
	}
	m.report = Report{} // the page cache is warm now, and Go's heap has grown
	for range m.options.Rounds {
		if err := m.round(ctx); err != nil {
			return err
		}
	}
	if err := m.overtime(ctx); err != nil {
		return err
	}
	if err := m.throughput(ctx); err != nil {
		return err
	}
	var err error
	m.report.Idle, err = idleMemory(ctx, m.options.Create)
	return err
}

// round takes one sample of everything, and two of bare node: each of the two
// kinds of runs comes right after one, and finds the machine in the same state.
func (m *measurer) round(ctx context.Context) error {
	r := &m.report
	if err := m.sampleBare(ctx); err != nil {
		return err
	}
	if err := r.Whole.time(func() error { return m.lifecycle(ctx) }); err != nil {
		return err
	}
	if err := m.sampleBare(ctx); err != nil {
		return err
	}
	return r.LaterRun.time(func() error { return run(ctx, m.lasting) })
}

func (m *measurer) overtime(ctx context.Context) error {
	const limit = 150 * time.Millisecond
	for range max(5, m.options.Rounds/4) {
		began := time.Now()
		res, err := m.lasting.Run(ctx, "for (;;);", runtime.RunOptions{Timeout: limit})
		if err != nil {
			return err
		}
		if res.Cause != runtime.CauseTimeout {
			return fmt.Errorf("an endless loop ended with cause %q", res.Cause)
		}
		m.report.Overtime = append(m.report.Overtime, time.Since(began)-limit)
	}
	return nil
}

func (m *measurer) sampleBare(ctx context.Context) error {
	return m.report.Bare.time(func() error { return m.bare.run(ctx) })
}

func (m *measurer) lifecycle(ctx context.Context) error {
	r := &m.report
	var rt *runtime.NodeRuntime
	err := r.Create.time(func() (err error) {
		rt, err = runtime.Create(ctx, m.options.Create)
		return err
	})
	if err != nil {
		return err
	}
	if err := r.FirstRun.time(func() error { return run(ctx, rt) }); err != nil {
		return errors.Join(err, rt.Close())
	}
	return r.Close.time(rt.Close)
}

func run(ctx context.Context, rt *runtime.NodeRuntime) error {
	res, err := rt.Run(ctx, program, runtime.RunOptions{})
	if err != nil {
		return err
	}
	return checkOutput(res.Stdout)
}
