package bench

import (
	"embed"
	"fmt"
	"path"
	"strconv"

	"gaol/runtime"
)

//go:embed programs/*.mjs
var programs embed.FS

// program runs on bare node and in jails, from the same source and with the same
// arguments.
type program struct {
	name   string
	rounds int      // the first argument, which scales the work; 0: none
	more   []string // further arguments
	stdout string   // what it must print; empty: what bare node prints
	value  string   // the JSON that it must return; empty: nothing
}

var (
	hello  = program{name: "hello", stdout: "hello\n", value: `{"answer":42}`}
	parked = program{name: "parked", stdout: "parked\n"}
	calls  = program{name: "calls", rounds: 1000}
	stream = program{name: "stream", rounds: streamPieces}
)

type workload struct {
	program
	id   ID
	what string
}

// workloads take half a second to a second each on bare node.
var workloads = []workload{
	{program{name: "compute", rounds: 2000}, computeID, "compute-bound program"},
	{program{name: "json", rounds: 450}, jsonID, "JSON program"},
	{program{name: "garbage", rounds: 640}, garbageID, "GC-heavy program"},
	{program{name: "files", rounds: 160}, filesID, "file-heavy program"},
}

// project uses files in the way of npm, a compiler and Node's loader, and computes. The
// file-heavy program does nothing but use files.
var project = workload{program{name: "project", rounds: 60}, projectID, "a project's file work"}

func (p program) file() string { return "programs/" + p.name + ".mjs" }

func (p program) code() string {
	text, err := programs.ReadFile(p.file())
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

func (p program) args() []string {
	if p.rounds == 0 {
		return nil
	}
	return append([]string{strconv.Itoa(p.rounds)}, p.more...)
}

func (p program) runOptions() runtime.RunOptions {
	return runtime.RunOptions{Name: path.Base(p.file()), Args: p.args()}
}

// checkOutput ensures that a program that failed early is not counted as a fast one.
func (p program) checkOutput(got []byte) error {
	if string(got) != p.stdout {
		return fmt.Errorf("%s printed %q, want %q", p.file(), got, p.stdout)
	}
	return nil
}

// succeeded checks the exit code of a run.
func succeeded(p program, res *runtime.Result) error {
	if res.ExitCode != 0 {
		return fmt.Errorf("%s ended with exit code %d and cause %q: %.300s", p.file(), res.ExitCode, res.Cause, res.Stderr)
	}
	return nil
}

// check is checkOutput for a run in a jail, which must also have returned its value.
func (p program) check(res *runtime.Result) error {
	if err := succeeded(p, res); err != nil {
		return err
	}
	if string(res.Value) != p.value {
		return fmt.Errorf("%s returned %q, want %q: %.300s", p.file(), res.Value, p.value, res.Stderr)
	}
	return p.checkOutput(res.Stdout)
}
