package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"slices"

	"gaol/rootfs"
	"gaol/runtime"
)

// Options selects the measurements and their number. A zero field means its default.
type Options struct {
	// Samples is the number of samples of each short time. The default of 200 is
	// enough for a 99th percentile that two samples exceed. What takes longer is
	// measured less often, in proportion.
	Samples int

	// Only lists the figures to measure. Default: all.
	Only []ID

	// Launchers are measured side by side. Default: all.
	Launchers []runtime.Launcher

	// Quick reduces the work, which the figures' names then say: to see that
	// everything works, not for figures to quote.
	Quick bool

	// Create is the options of the measured runtimes, except the launcher, and the
	// limits of programs that take long. Bare node uses the same image.
	Create runtime.Options

	// Progress receives a line for each step. Nil: nothing is written.
	Progress io.Writer
}

// DefaultSamples is the default of Options.Samples.
const DefaultSamples = 200

func (o Options) withDefaults() Options {
	if o.Samples <= 0 {
		o.Samples = DefaultSamples
	}
	if len(o.Launchers) == 0 {
		o.Launchers = []runtime.Launcher{runtime.LauncherExec, runtime.LauncherZygote}
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return o
}

// fewer returns how often to measure something that takes n times as long as a run.
func (o Options) fewer(n int) int { return max(3, o.Samples/n) }

// Measure measures. By default it takes some five minutes. The zygotes that it starts
// stay until runtime.CloseIdle; it leaves nothing else behind, even if it fails or
// ctx is canceled.
func Measure(ctx context.Context, o Options) (*Report, error) {
	m := &measurer{options: o.withDefaults(), lasting: runtimes{}}
	heap := make([]byte, hostHeap)
	err := m.open(ctx)
	if err == nil {
		err = m.measureAll(ctx)
	}
	goruntime.KeepAlive(heap)
	if err = errors.Join(err, m.close()); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return &m.report, nil
}

// measurer fills in a report.
type measurer struct {
	options Options
	dir     string // of bare node's programs
	bare    *bareNode
	lasting runtimes // for runs in an existing runtime
	report  Report
}

// open prepares what all figures need. It creates the runtimes first, because their
// errors explain best why a machine or an image does not work.
func (m *measurer) open(ctx context.Context) (err error) {
	for _, side := range m.jailed() {
		rt, err := runtime.Create(ctx, m.create(side))
		if err != nil {
			return err
		}
		m.lasting[side] = rt
	}
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
	failed := m.closeLasting()
	if m.dir != "" {
		failed = errors.Join(failed, os.RemoveAll(m.dir))
	}
	return failed
}

func (m *measurer) closeLasting() error {
	lasting := m.lasting
	m.lasting = nil
	return lasting.close()
}

// runtimes holds a runtime for each jailed side.
type runtimes map[Side]*runtime.NodeRuntime

func (r runtimes) close() (failed error) {
	for _, rt := range r {
		failed = errors.Join(failed, rt.Close())
	}
	return failed
}

// withRuntimes calls use with a new runtime for each jailed side, and closes them.
func (m *measurer) withRuntimes(ctx context.Context, change func(*runtime.Options), use func(runtimes) error) (failed error) {
	all := runtimes{}
	defer func() { failed = errors.Join(failed, all.close()) }()
	for _, side := range m.jailed() {
		o := m.create(side)
		change(&o)
		rt, err := runtime.Create(ctx, o)
		if err != nil {
			return err
		}
		all[side] = rt
	}
	return use(all)
}

// create returns the options of one side's runtimes.
func (m *measurer) create(side Side) runtime.Options {
	o := m.options.Create
	o.Launcher = runtime.LauncherExec
	if side == Zygote {
		o.Launcher = runtime.LauncherZygote
	}
	return o
}

// step measures figures that are measured together.
type step struct {
	name    string
	measure func(context.Context) error
	figures []ID
}

func (m *measurer) steps() []step {
	return []step{
		{"runs", m.runs, []ID{runMedianID, runTailID}},
		{"throughput", m.throughput, []ID{clients1ID, clients2ID, clients4ID}},
		{"create, run, close", m.lifecycle, []ID{lifecycleID, createID}},
		{"pool", m.pooled, []ID{pooledID}},
		{"memory", m.memory, []ID{idleMemoryID, programMemoryID}},
		{"programs", m.programs, []ID{computeID, jsonID, garbageID, filesID}},
		{"streams", m.streams, []ID{callbackID}},
		{"permissions", m.strictRuns, []ID{strictID}},
		{"files of the host", m.hostFiles, []ID{readLargeID, writeLargeID}},
		{"snapshots", m.snapshots, []ID{snapshotID, projectID, overlayFilesID}},
		{"calls", m.calls, []ID{callID, callHTTPID, callsID}},
		{"evaluations", m.evaluations, []ID{evaluateID}},
		{"normalizations", m.normalizations, []ID{normalizeID}},
		{"timeouts", m.overtime, []ID{overtimeID}},
		{"live runtimes", m.manyLive, []ID{manyLiveID}}, // last: it closes the lasting runtimes
	}
}

// IDs returns the ids of all figures, in the order in which they are measured.
func IDs() []ID {
	var all []ID
	for _, s := range (&measurer{}).steps() {
		all = append(all, s.figures...)
	}
	return all
}

func (m *measurer) measureAll(ctx context.Context) error {
	for _, s := range append([]step{{"warm up", m.warmUp, m.options.Only}}, m.steps()...) {
		if !m.wants(s.figures...) {
			continue
		}
		fmt.Fprintf(m.options.Progress, "gaol: bench: %s\n", s.name)
		if err := s.measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	m.report.sortBarsFirst()
	return nil
}

// wants reports whether one of the figures was requested.
func (m *measurer) wants(ids ...ID) bool {
	return len(m.options.Only) == 0 || slices.ContainsFunc(ids, func(id ID) bool { return slices.Contains(m.options.Only, id) })
}

// add adds the requested ones of the figures to the report.
func (m *measurer) add(list ...Figure) {
	for _, f := range list {
		if m.wants(f.ID) {
			m.report.Figures = append(m.report.Figures, f)
		}
	}
}

// sides returns all sides, bare node first.
func (m *measurer) sides() []Side { return append([]Side{Bare}, m.jailed()...) }

func (m *measurer) jailed() []Side {
	var sides []Side
	for _, l := range m.options.Launchers {
		sides = append(sides, Side(l.String()))
	}
	return sides
}

// runOn runs p once: on bare node, or in the side's lasting runtime.
func (m *measurer) runOn(ctx context.Context, side Side, p program) error {
	if side == Bare {
		return m.bare.run(ctx, p)
	}
	return run(ctx, m.lasting[side], p)
}

func run(ctx context.Context, rt *runtime.NodeRuntime, p program) error {
	res, err := rt.Run(ctx, p.code(), p.runOptions())
	if err != nil {
		return err
	}
	return p.check(res)
}
