package bench

import (
	"context"
	_ "embed"
	"fmt"

	"gaol/runtime"
)

//go:embed hello.mjs
var helloCode string

// Hello is a small program that prints a line and returns a value.
var Hello = Program{Name: "hello", Code: helloCode, Stdout: "hello world\n", Value: `{"answer":42}`}

// Program runs on bare Node and in jails, from the same source and with the same arguments.
type Program struct {
	Name, Code string
	Args       []string
	Stdout     string // its expected output
	Value      string // the JSON that it must return; empty: nothing
}

// File returns the name of the program's file.
func (p Program) File() string { return p.Name + ".mjs" }

// Run runs p in rt, where it must succeed. OnStdout may be nil.
func (p Program) Run(ctx context.Context, rt *runtime.NodeRuntime, onStdout func([]byte)) (*runtime.Result, error) {
	res, err := rt.Run(ctx, p.Code, runtime.RunOptions{Name: p.File(), Args: p.Args, OnStdout: onStdout})
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("%s ended with exit code %d and cause %q: %.300s", p.File(), res.ExitCode, res.Cause, res.Stderr)
	}
	return res, err
}

// check ensures that a program that failed early is not counted as a fast one.
func (p Program) check(stdout, value []byte) error {
	if string(stdout) != p.Stdout || string(value) != p.Value {
		return fmt.Errorf("%s printed %q and returned %q, want %q and %q", p.File(), stdout, value, p.Stdout, p.Value)
	}
	return nil
}

// Run runs p in rt and checks the result.
func Run(ctx context.Context, rt *runtime.NodeRuntime, p Program) error {
	res, err := p.Run(ctx, rt, nil)
	if err != nil {
		return err
	}
	return p.check(res.Stdout, res.Value)
}

// RunOn runs p once: on bare Node, or in the side's runtime.
func (m *Measurer) RunOn(ctx context.Context, all Runtimes, side Side, p Program) error {
	if side != Bare {
		return Run(ctx, all[side], p)
	}
	stdout, err := m.Bare.Output(ctx, p)
	if err != nil {
		return err
	}
	return p.check(stdout, []byte(p.Value)) // no value leaves bare Node
}
