package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"

	"gaol/rootfs"
	"gaol/runtime"
)

// Options selects the measurements and their number.
type Options struct {
	// Samples is the number of samples of each short time. 200 are enough for a 99th
	// percentile that two samples exceed. What takes longer is measured less often, in
	// proportion.
	Samples int

	// Only lists the ids of the figures to measure. Nil: all, or, with Isolations, those of
	// IsolationIDs, which then are the only ones that may be listed.
	Only []string

	// Jailed are the launchers to measure side by side.
	Jailed []Side

	// Isolations are the isolations to measure side by side instead of launchers, each with
	// its fastest launcher: names that runtime.ParseIsolation accepts.
	Isolations []Side

	// LeaveOut leaves out isolations that do not work on this machine, unless none does.
	// Otherwise Measure fails.
	LeaveOut bool

	// Quick reduces the work to a small part of what the figures' names say: to see that
	// everything works, not for figures to quote.
	Quick bool

	// Create is the options of the measured runtimes, except the launcher or
	// isolation, and the limits of programs that take long. Bare node uses the same image.
	// Its Progress also receives a line for each figure, unless it is nil.
	Create runtime.Options
}

// fewer returns how often to measure something that takes n times as long as a run.
func (o Options) fewer(n int) int { return max(3, o.Samples/n) }

// quickPart is the part of the work that Options.Quick leaves.
const quickPart = 32

// figures returns the figures to measure.
func (o Options) figures() (list []Figure) {
	for _, f := range figures {
		only := o.Only
		if o.Isolations != nil {
			f.Bar = isolationBars[f.ID]
			if only == nil {
				only = IsolationIDs()
			}
		}
		if only == nil || slices.Contains(only, f.ID) {
			list = append(list, f)
		}
	}
	return list
}

// work returns how much of the work n to do.
func (o Options) work(n int) int {
	if o.Quick {
		return max(1, n/quickPart)
	}
	return n
}

// Measure measures. By default it takes some five minutes. The zygotes that it starts
// stay until runtime.CloseIdle; it leaves nothing else behind, even if it fails or
// ctx is canceled.
func Measure(ctx context.Context, o Options) (*Report, error) {
	m := &measurer{options: o}
	if o.Isolations != nil {
		if err := m.chooseIsolations(ctx); err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
	}
	heap := make([]byte, hostHeap)
	// The runtimes are first: their errors explain best why a machine or an image does
	// not work.
	err := m.withRuntimes(ctx, func(*runtime.Options) {}, func(all runtimes) error {
		m.lasting = all
		return errors.Join(m.measureAll(ctx), m.close())
	})
	goruntime.KeepAlive(heap)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return &m.report, nil
}

// measurer fills in a report.
type measurer struct {
	options  Options
	lasting  runtimes // for runs in an existing runtime
	dir      string   // of bare node's programs
	bare     *bareNode
	warm     Samples           // of runs
	snapshot *runtime.Snapshot // of many small files; nil until a figure needs it
	report   Report
}

// open prepares what all figures need.
func (m *measurer) open(ctx context.Context) error {
	store, err := rootfs.Open(m.options.Create.Store)
	if err != nil {
		return err
	}
	image, err := store.Ensure(ctx, m.options.Create.Image, rootfs.BuildOptions{})
	if err != nil {
		return err
	}
	if m.dir, err = os.MkdirTemp(memoryFolder(), "gaol-bench-"); err != nil {
		return err
	}
	if m.bare, err = newBareNode(m.dir, image); err != nil {
		return err
	}
	m.report.Environment, err = environment(m.options, image)
	return err
}

func (m *measurer) close() error {
	err := m.removeSnapshot()
	if m.dir != "" {
		err = errors.Join(err, os.RemoveAll(m.dir))
	}
	return err
}

func (m *measurer) measureAll(ctx context.Context) error {
	if err := m.open(ctx); err != nil {
		return err
	}
	const rounds = 3 // fill the page cache and start the zygotes
	if err := turns(ctx, rounds, m.sides(), func(side Side) error { return m.runOn(ctx, m.lasting, side, hello) }); err != nil {
		return err
	}
	for _, f := range m.options.figures() {
		if w := m.options.Create.Progress; w != nil {
			fmt.Fprintf(w, "gaol: bench: %s\n", f.Name)
		}
		s, base, err := f.measure(m, ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", f.ID, err)
		}
		m.report.Figures = append(m.report.Figures, f.measured(s, base))
	}
	return nil
}

// sides returns all sides, bare node first.
func (m *measurer) sides() []Side { return append([]Side{Bare}, m.options.Jailed...) }

// runtimes holds a runtime for each jailed side.
type runtimes map[Side]*runtime.NodeRuntime

// withRuntimes calls use with a new runtime for each jailed side, and closes them.
func (m *measurer) withRuntimes(ctx context.Context, change func(*runtime.Options), use func(runtimes) error) (failed error) {
	all := runtimes{}
	for _, side := range m.options.Jailed {
		o := m.create(side)
		change(&o)
		rt, err := runtime.Create(ctx, o)
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, rt.Close()) }()
		all[side] = rt
	}
	return use(all)
}

// create returns the options of one side's runtimes: all defaults, which are what a user
// gets, but for what the measurement is about.
func (m *measurer) create(side Side) runtime.Options {
	o := m.options.Create
	switch side {
	case Exec:
		o.Launcher = runtime.LauncherExec
	case Zygote:
		o.Launcher = runtime.LauncherZygote
	default:
		var err error
		if o.Isolation, o.OCI, err = runtime.ParseIsolation(string(side)); err != nil {
			panic(err) // Options.Isolations says which names there may be
		}
	}
	return o
}

// raiseLimits raises limits so that they do not affect the measurement: Node's helper
// threads are as free as bare node's.
func raiseLimits(o *runtime.Options) {
	o.Limits.CPUs = float64(max(2, goruntime.NumCPU()))
	o.Limits.Memory = 1 << 30
	o.Limits.Disk = 256 << 20
}
