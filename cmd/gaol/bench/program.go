package bench

import (
	"embed"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"gaol/runtime"
)

//go:embed programs/*.mjs
var programs embed.FS

// program is what bare node and the jails run: the same source, with the same
// argument.
type program struct {
	name   string
	rounds int      // the argument, which scales the work; 0: there is none
	more   []string // further arguments
	stdout string   // what it must print; empty: whatever bare node prints
	value  string   // the JSON that it must hand back; empty: nothing
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

// workloads take bare node half a second to a second each.
var workloads = []workload{
	{program{name: "compute", rounds: 2000}, computeID, "compute-bound program"},
	{program{name: "json", rounds: 450}, jsonID, "JSON program"},
	{program{name: "garbage", rounds: 640}, garbageID, "GC-heavy program"},
	{program{name: "files", rounds: 160}, filesID, "file-heavy program"},
}

// project is what a guest does with files besides computing, where the file-heavy
// program does nothing else: its mix is that of npm, of a compiler and of Node's loader.
var project = workload{program{name: "project", rounds: 60}, projectID, "a project's file work"}

func workloadOf(id ID) workload {
	return workloads[slices.IndexFunc(workloads, func(w workload) bool { return w.id == id })]
}

func (p program) file() string { return p.name + ".mjs" }

func (p program) code() string {
	text, err := programs.ReadFile("programs/" + p.file())
	if err != nil {
		panic(err) // it is part of this program
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
	return runtime.RunOptions{Name: filepath.Base(p.file()), Args: p.args()}
}

// checkOutput keeps a program that failed early from counting as a fast one.
func (p program) checkOutput(got []byte) error {
	if string(got) != p.stdout {
		return fmt.Errorf("%s printed %q, want %q", p.file(), got, p.stdout)
	}
	return nil
}

// check is checkOutput for a run in a jail, whose value must have come back too.
func (p program) check(res *runtime.Result) error {
	if res.ExitCode != 0 || string(res.Value) != p.value {
		return fmt.Errorf("%s ended with exit code %d, cause %q and the value %q, want 0, none and %q: %.300s",
			p.file(), res.ExitCode, res.Cause, res.Value, p.value, res.Stderr)
	}
	return p.checkOutput(res.Stdout)
}

// allPrograms are all that bare node may be asked to run.
func allPrograms() []program {
	all := []program{hello, parked, calls, stream, project.program}
	for _, w := range workloads {
		all = append(all, w.program)
	}
	return all
}
