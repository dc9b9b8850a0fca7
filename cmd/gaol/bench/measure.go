package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/report"
	"gaol/rootfs"
	"gaol/runtime"
)

// Options selects the measurements and their number.
type Options struct {
	// Samples is the number of samples of each short time. 200 are enough for a 99th
	// percentile that two samples exceed. What takes longer is measured less often, in
	// proportion.
	Samples int

	// Figures are the figures to measure.
	Figures []Figure

	// Jailed are the launchers or isolations to measure side by side: Exec, Zygote, and names
	// that runtime.ParseIsolation accepts. An isolation uses its fastest launcher.
	Jailed []Side

	// Create is the options of the measured runtimes, except the launcher or
	// isolation, and the limits of programs that take long. Bare Node uses the same image.
	// Its Progress also receives a line for each figure, unless it is nil.
	Create runtime.Options
}

// Fewer returns how often to measure something that takes n times as long as a run.
func (o Options) Fewer(n int) int { return max(3, o.Samples/n) }

// Measure measures. The zygotes that it starts stay until runtime.CloseIdle; it leaves nothing
// else behind, even if it fails or ctx is canceled.
func Measure(ctx context.Context, o Options) (*Report, error) {
	if err := runtime.CheckPrivileges(); err != nil { // before it downloads an image
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer goruntime.KeepAlive(make([]byte, 16<<20)) // a heap as a small server has: Go collects garbage as often
	m := &Measurer{Options: o}
	// Jails are made first: their errors explain best why a machine or an image does not work.
	err := m.WithRuntimes(ctx, func(*runtime.Options) {}, func(all Runtimes) error {
		m.Lasting = all
		return errors.Join(m.measureAll(ctx), os.RemoveAll(m.folder))
	})
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return &m.report, nil
}

// Measurer fills in a report.
type Measurer struct {
	Options Options
	Lasting Runtimes // for runs in an existing runtime
	Bare    *BareNode

	folder string  // of bare Node's programs; empty until open
	warm   Samples // of runs
	report Report
}

// open prepares what all figures need.
func (m *Measurer) open(ctx context.Context) error {
	store, err := rootfs.Open(m.Options.Create.Store)
	if err != nil {
		return err
	}
	image, err := store.Ensure(ctx, m.Options.Create.Image, rootfs.BuildOptions{})
	if err != nil {
		return err
	}
	// In memory, as a jail's files are, so that the disk is not measured.
	if m.folder, err = os.MkdirTemp("/dev/shm", "gaol-bench-"); err != nil {
		m.folder, err = os.MkdirTemp("", "gaol-bench-")
	}
	if err != nil {
		return err
	}
	if m.Bare, err = newBareNode(m.folder, image); err != nil {
		return err
	}
	m.report.Environment, err = environment(m.Options, image)
	return err
}

func (m *Measurer) measureAll(ctx context.Context) error {
	if err := m.open(ctx); err != nil {
		return err
	}
	const rounds = 3 // fill the page cache and start the zygotes
	if err := Turns(ctx, rounds, m.Sides(), func(side Side) error { return m.RunOn(ctx, m.Lasting, side, Hello) }); err != nil {
		return err
	}
	for _, f := range m.Options.Figures {
		if w := m.Options.Create.Progress; w != nil {
			fmt.Fprintf(w, "gaol: bench: %s\n", f.Name)
		}
		s, base, err := f.Measure(ctx, m)
		if err != nil {
			return fmt.Errorf("%s: %w", f.ID, err)
		}
		m.report.Figures = append(m.report.Figures, f.Measured(s, base))
	}
	return nil
}

// Sides returns all sides, bare Node first.
func (m *Measurer) Sides() []Side { return append([]Side{Bare}, m.Options.Jailed...) }

// Runtimes holds a runtime for each jailed side.
type Runtimes map[Side]*runtime.NodeRuntime

// WithRuntimes calls use with a new runtime for each jailed side, and closes them.
func (m *Measurer) WithRuntimes(ctx context.Context, change func(*runtime.Options), use func(Runtimes) error) (failed error) {
	all := Runtimes{}
	for _, side := range m.Options.Jailed {
		o := m.Create(side)
		change(&o)
		rt, err := runtime.Create(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
		defer func() { failed = errors.Join(failed, rt.Close()) }()
		all[side] = rt
	}
	return use(all)
}

// Create returns the options of one side's runtimes: Options.Create with the side's launcher or
// isolation, and otherwise the defaults, as for users.
func (m *Measurer) Create(side Side) runtime.Options {
	o := m.Options.Create
	switch side {
	case Exec:
		o.Launcher = runtime.LauncherExec
	case Zygote:
		o.Launcher = runtime.LauncherZygote
	default:
		var err error
		if o.Isolation, o.OCI, err = runtime.ParseIsolation(string(side)); err != nil {
			panic(err) // Options.Jailed documents the names
		}
	}
	return o
}

// Side is a way to run a program: bare Node, a launcher, or an isolation, named as on the command
// line.
type Side string

// The sides that are not isolations.
const (
	Bare   Side = "bare"
	Exec   Side = "exec"
	Zygote Side = "zygote"
)

// Samples are the samples of each side, in the unit of the figure.
type Samples map[Side][]float64

// Add takes a sample of a side.
func (s Samples) Add(side Side, take Sampler) error {
	value, err := take(side)
	if err == nil {
		s[side] = append(s[side], value)
	}
	return err
}

// percentiles returns, for each side, the smallest sample that at least p percent of all
// do not exceed.
func (s Samples) percentiles(p int) Values {
	v := Values{}
	for side, list := range s {
		rank := (len(list)*p + 99) / 100
		v[side] = slices.Sorted(slices.Values(list))[max(rank, 1)-1]
	}
	return v
}

// Sampler takes one sample of a side.
type Sampler func(Side) (float64, error)

// Timed returns a Sampler of the milliseconds that do takes.
func Timed(do func(Side) error) Sampler {
	return func(side Side) (float64, error) {
		began := time.Now()
		err := do(side)
		return Milliseconds(time.Since(began)), err
	}
}

// Milliseconds returns a time in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Sample takes n samples of each side. There is no base.
func Sample(ctx context.Context, n int, sides []Side, take Sampler) (s, base Samples, err error) {
	s = Samples{}
	err = Turns(ctx, n, sides, func(side Side) error { return s.Add(side, take) })
	return s, nil, err
}

// Turns calls do n times for each side, in turns, so that drift of the machine
// affects all sides.
func Turns(ctx context.Context, n int, sides []Side, do func(Side) error) error {
	for range n {
		for _, side := range sides {
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

// Report is the result of all measurements. gaol bench --json prints it as JSON.
type Report struct {
	Environment Environment `json:"environment"`
	Figures     []Figure    `json:"figures"`
}

// Table returns the report for people: a row for each side and figure.
func (r *Report) Table() string {
	lines := []string{"side\tfigure\tunit\tvalue\tratio"}
	for _, side := range append([]Side{Bare}, r.Environment.Sides...) {
		for _, f := range r.Figures {
			value, measured := f.Values[side]
			if !measured {
				continue
			}
			ratio := ""
			if got, ok := f.Ratio[side]; ok {
				ratio = Short(got)
			}
			lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%6s\t%5s", side, f.Name, f.Unit, Short(value), ratio))
		}
	}
	e := r.Environment
	return report.Table(lines) + "\nRatios compare with bare node, or with the other side that the figure's name has.\n" +
		fmt.Sprintf("Node %s, kernel %s, %s, processors: %d, samples: %d\n", e.Node, e.Kernel, e.Arch, e.CPUs, e.Samples)
}

// Short formats a number with three significant digits.
func Short(f float64) string {
	decimals := 2
	switch {
	case f >= 100:
		decimals = 0
	case f >= 10:
		decimals = 1
	}
	return strconv.FormatFloat(f, 'f', decimals, 64)
}

// Environment describes the machine and the conditions of a measurement.
type Environment struct {
	Kernel  string `json:"kernel"`
	Arch    string `json:"arch"`
	CPUs    int    `json:"cpus"`
	Node    string `json:"node"`
	Image   string `json:"image"`
	Samples int    `json:"samples"`
	Sides   []Side `json:"sides"` // the jailed ones, in the order of the table
}

func environment(o Options, image *rootfs.Image) (Environment, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Environment{}, err
	}
	return Environment{
		Kernel: unix.ByteSliceToString(name.Release[:]), Arch: goruntime.GOARCH, CPUs: goruntime.NumCPU(),
		Node: image.Node, Image: image.ID, Samples: o.Samples, Sides: o.Jailed,
	}, nil
}
