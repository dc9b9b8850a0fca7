package main

import (
	"context"
	"embed"
	"strconv"

	"gaol/cmd/gaol/bench"
	"gaol/runtime"
)

//go:embed programs/*.mjs
var programs embed.FS

var parked = newProgram("parked")

// newProgram returns a program of the folder programs, with arguments.
func newProgram(name string, args ...string) bench.Program {
	text, err := programs.ReadFile("programs/" + name + ".mjs")
	if err != nil {
		panic(err) // it is embedded
	}
	return bench.Program{Name: name, Code: string(text), Args: args}
}

// quickPart is the part of the work that the flag -quick leaves.
const quickPart = 32

// work returns how much of the work n to do.
func (x *fixtures) work(n int) int {
	if x.quick {
		return max(1, n/quickPart)
	}
	return n
}

// whole returns a measurement of the whole process of a program that takes half a second to
// a second on bare Node: how a jail changes the speed of a program that is running. A jail's
// output must be that of bare Node's first process. On a snapshot, the program's working directory in
// jails is on one.
func (x *fixtures) whole(name string, rounds int, onSnapshot bool) bench.Measurement {
	return func(ctx context.Context, m *bench.Measurer) (s, _ bench.Samples, err error) {
		p := newProgram(name, strconv.Itoa(x.work(rounds)))
		first, err := m.Bare.Output(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		p.Stdout = string(first)
		id := ""
		if onSnapshot {
			if id, err = x.snapshotOfFiles(ctx, m); err != nil {
				return nil, nil, err
			}
		}
		err = m.WithRuntimes(ctx, func(o *runtime.Options) {
			raiseLimits(o)
			o.Snapshot = id
		}, func(all bench.Runtimes) error {
			once := func(side bench.Side) error { return m.RunOn(ctx, all, side, p) }
			if err := bench.Turns(ctx, 1, m.Sides(), once); err != nil { // not measured: it starts zygotes
				return err
			}
			s, _, err = bench.Sample(ctx, m.Options.Fewer(20), m.Sides(), bench.Timed(once))
			return err
		})
		return s, nil, err
	}
}
