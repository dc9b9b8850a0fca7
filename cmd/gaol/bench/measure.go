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

// Options says what is measured and how often. A zero field takes its default.
type Options struct {
	// Samples is how many samples are taken of each short time: default 200,
	// enough for a 99th percentile that two samples are longer than. What
	// takes longer is measured less often, in proportion.
	Samples int

	// Only has no other figures measured. Default: all.
	Only []ID

	// Launchers are measured side by side. Default: all there are.
	Launchers []runtime.Launcher

	// Quick does less work where it's much, which the figures' names then say:
	// to see that everything works, not for figures to quote.
	Quick bool

	// Create is what the measured runtimes are made with, but for the
	// launcher, and for the limits of programs that take long. Its image is
	// that of bare node as well.
	Create runtime.Options

	// Progress is told what is being measured. Nil: nobody is.
	Progress io.Writer
}

// DefaultSamples is Options.Samples's default.
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

// fewer is how often something is done that takes n times as long as a run.
func (o Options) fewer(n int) int { return max(3, o.Samples/n) }

// Measure measures. It takes some five minutes by default. The zygotes that it
// starts stay until runtime.CloseIdle; nothing else of it does, whether it succeeds
// or fails, or ctx ends.
func Measure(ctx context.Context, o Options) (*Report, error) {
	r, err := measure(ctx, o.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return r, nil
}

func measure(ctx context.Context, o Options) (_ *Report, failed error) {
	m := &measurer{options: o, lasting: map[Side]*runtime.NodeRuntime{}, heap: make([]byte, hostHeap)}
	defer goruntime.KeepAlive(m.heap)
	defer func() { failed = errors.Join(failed, m.close()) }()
	if err := m.open(ctx); err != nil {
		return nil, err
	}
	return &m.report, m.all(ctx)
}

// measurer fills in a report.
type measurer struct {
	options Options
	dir     string // of the bare programs
	bare    *bareNode
	lasting map[Side]*runtime.NodeRuntime // of the runs in a runtime that's there already
	heap    []byte                        // is in use, as hostHeap says; nothing is in it
	report  Report
}

// open makes what all figures need. The runtimes come first: they know best what's
// wrong with a machine or an image.
func (m *measurer) open(ctx context.Context) error {
	for _, l := range m.options.Launchers {
		rt, err := runtime.Create(ctx, m.create(Side(l.String())))
		if err != nil {
			return err
		}
		m.lasting[Side(l.String())] = rt
	}
	image, err := m.image(ctx)
	if err != nil {
		return err
	}
	if m.dir, err = os.MkdirTemp(fastFolder(), "gaol-bench-"); err != nil {
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
	var failed error
	for side, rt := range m.lasting {
		failed = errors.Join(failed, rt.Close())
		delete(m.lasting, side)
	}
	return failed
}

// create gives the options of one side's runtimes.
func (m *measurer) create(side Side) runtime.Options {
	o := m.options.Create
	for _, l := range m.options.Launchers {
		if Side(l.String()) == side {
			o.Launcher = l
		}
	}
	return o
}

func (m *measurer) image(ctx context.Context) (*rootfs.Image, error) {
	store, err := rootfs.Open(m.options.Create.Store)
	if err != nil {
		return nil, err
	}
	return store.Ensure(ctx, m.options.Create.Image, rootfs.BuildOptions{})
}

// step measures what is measured together.
type step struct {
	what  string
	do    func(context.Context) error
	gives []ID
}

func (m *measurer) steps() []step {
	return []step{
		{"runs", m.runs, []ID{runMedianID, runTailID}},
		{"throughput", m.throughput, []ID{clients1ID, clients2ID, clients4ID}},
		{"create, run, close", m.lifecycle, []ID{lifecycleID, createID, firstRunID, closeID}},
		{"pool", m.pooled, []ID{pooledID}},
		{"memory", m.memory, []ID{idleMemoryID, programMemoryID}},
		{"programs", m.programs, []ID{computeID, jsonID, garbageID, filesID}},
		{"streams", m.streams, []ID{callbackID, eventsID}},
		{"permissions", m.strictRuns, []ID{strictID}},
		{"permissions for files", m.restrictedFiles, []ID{restrictedFilesID}},
		{"files of the host", m.hostFiles, []ID{readSmallID, writeSmallID, readLargeID, writeLargeID}},
		{"snapshots", m.snapshots, []ID{snapshotID, projectID, overlayFilesID}},
		{"calls", m.calls, []ID{callID, callHTTPID, callsID}},
		{"evaluations", m.evaluations, []ID{evaluateID}},
		{"normalizations", m.normalizations, []ID{normalizeID}},
		{"timeouts", m.overtime, []ID{overtimeID}},
		{"live runtimes", m.crowds, []ID{fewLiveID, manyLiveID}},
	}
}

// IDs are those of all figures, in the order in which they are measured.
func IDs() []ID {
	var all []ID
	for _, s := range (&measurer{}).steps() {
		all = append(all, s.gives...)
	}
	return all
}

// all measures one thing after the other.
func (m *measurer) all(ctx context.Context) error {
	for _, s := range append([]step{{"warm up", m.warmUp, m.options.Only}}, m.steps()...) {
		if !m.wants(s.gives...) {
			continue
		}
		fmt.Fprintf(m.options.Progress, "gaol: bench: %s\n", s.what)
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
	}
	m.report.barredFirst()
	return nil
}

// wants says whether one of these is to be measured.
func (m *measurer) wants(ids ...ID) bool {
	return len(m.options.Only) == 0 || slices.ContainsFunc(ids, func(id ID) bool { return slices.Contains(m.options.Only, id) })
}

// add leaves out what was measured with others, and is not wanted.
func (m *measurer) add(list ...Figure) {
	for _, f := range list {
		if m.wants(f.ID) {
			m.report.Figures = append(m.report.Figures, f)
		}
	}
}

// sides are all that are measured, bare node first.
func (m *measurer) sides() []Side { return append([]Side{Bare}, m.jailed()...) }

func (m *measurer) jailed() []Side {
	var sides []Side
	for _, l := range m.options.Launchers {
		sides = append(sides, Side(l.String()))
	}
	return sides
}

// turns has the sides take turns, n times, so that drift of the machine hits all.
func (m *measurer) turns(ctx context.Context, n int, do func(Side) error) error {
	for range n {
		for _, side := range m.sides() {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := do(side); err != nil {
				return fmt.Errorf("%s: %w", side, err)
			}
		}
	}
	return nil
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
