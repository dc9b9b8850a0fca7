package bench

import (
	"context"
	"embed"
	"fmt"
	"strconv"

	"gaol/runtime"
)

//go:embed programs/*.mjs
var programs embed.FS

// program runs on bare node and in jails, from the same source and with the same
// arguments.
type program struct {
	name       string
	rounds     int    // the first argument, which scales the work; 0: none
	address    string // the second argument; empty: none
	stdout     string // what it must print; empty: what bare node prints
	value      string // the JSON that it must return; empty: nothing
	onSnapshot bool   // in jails, its working directory is on a snapshot
}

var (
	hello  = program{name: "hello", stdout: "hello world\n", value: `{"answer":42}`}
	parked = program{name: "parked", stdout: "parked\n"}
)

func (p program) file() string { return "programs/" + p.name + ".mjs" }

func (p program) code() string {
	text, err := programs.ReadFile(p.file())
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

func (p program) args() (args []string) {
	if p.rounds > 0 {
		args = append(args, strconv.Itoa(p.rounds))
	}
	if p.address != "" {
		args = append(args, p.address)
	}
	return args
}

// run runs p in rt, where it must succeed. OnStdout may be nil.
func (p program) run(ctx context.Context, rt *runtime.NodeRuntime, onStdout func([]byte)) (*runtime.Result, error) {
	res, err := rt.Run(ctx, p.code(), runtime.RunOptions{Name: p.name + ".mjs", Args: p.args(), OnStdout: onStdout})
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("%s ended with exit code %d and cause %q: %.300s", p.file(), res.ExitCode, res.Cause, res.Stderr)
	}
	return res, err
}

// check ensures that a program that failed early is not counted as a fast one.
func (p program) check(stdout, value []byte) error {
	if string(stdout) != p.stdout || string(value) != p.value {
		return fmt.Errorf("%s printed %q and returned %q, want %q and %q", p.file(), stdout, value, p.stdout, p.value)
	}
	return nil
}

// run runs p in rt and checks the result.
func run(ctx context.Context, rt *runtime.NodeRuntime, p program) error {
	res, err := p.run(ctx, rt, nil)
	if err != nil {
		return err
	}
	return p.check(res.Stdout, res.Value)
}

// runOn runs p once: on bare node, or in the side's runtime.
func (m *measurer) runOn(ctx context.Context, all runtimes, side Side, p program) error {
	if side != Bare {
		return run(ctx, all[side], p)
	}
	stdout, err := m.bare.output(ctx, p)
	if err != nil {
		return err
	}
	return p.check(stdout, []byte(p.value)) // no value leaves bare node
}

// whole returns a measurement of the whole process of a program that takes half a second to
// a second on bare node: how a jail changes the speed of a program that is running. A jail's
// output must be that of bare node's first process.
func whole(p program) measurement {
	return func(m *measurer, ctx context.Context) (s, _ Samples, err error) {
		p := p
		p.rounds = m.options.work(p.rounds)
		first, err := m.bare.output(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		p.stdout = string(first)
		id := ""
		if p.onSnapshot {
			if id, err = m.snapshotOfFiles(ctx); err != nil {
				return nil, nil, err
			}
		}
		err = m.withRuntimes(ctx, func(o *runtime.Options) {
			raiseLimits(o)
			o.Snapshot = id
		}, func(all runtimes) error {
			once := func(side Side) error { return m.runOn(ctx, all, side, p) }
			if err := turns(ctx, 1, m.sides(), once); err != nil { // not measured: it starts zygotes
				return err
			}
			s, _, err = sample(ctx, m.options.fewer(20), m.sides(), timed(once), nil)
			return err
		})
		return s, nil, err
	}
}
