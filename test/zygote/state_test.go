package zygote

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
	"gaol/test/harness"
)

// state is what testdata/state.mjs returns.
type state struct {
	Same  map[string]any
	Fresh map[string]any
	Clock map[string]float64
}

func takeState(t *testing.T, l runtime.Launcher, name string) state {
	t.Helper()
	code, err := os.ReadFile("testdata/state.mjs")
	if err != nil {
		t.Fatal(err)
	}
	o := harness.Options(runtime.Options{Env: map[string]string{"OWN": "1"}})
	o.Launcher = l
	rt := harness.CreateExact(t, o)
	res := harness.Run(t, rt, string(code), runtime.RunOptions{Name: name, Args: []string{"an argument"}, Env: map[string]string{"TZ": "Asia/Tokyo"}, Cwd: "/tmp"})
	var s state
	if err := res.Decode(&s); err != nil {
		t.Fatalf("%v: %s%s", err, res.Stdout, res.Stderr)
	}
	return s
}

// A forked run sees the same state as a started one.
func TestForkedStateIsTheRunsOwn(t *testing.T) {
	started := takeState(t, runtime.LauncherExec, "job.mjs")
	first, second := takeState(t, runtime.LauncherZygote, "job.mjs"), takeState(t, runtime.LauncherZygote, "job.mjs")
	if harness.InGVisor() { // whose /proc shows the zygote's
		first.Same["cmdline"], first.Same["environ"] = started.Same["cmdline"], started.Same["environ"]
	}
	if diff := cmp.Diff(started.Same, first.Same); diff != "" {
		t.Errorf("started (-), forked (+):\n%s", diff)
	}
	for name, value := range first.Fresh {
		if cmp.Equal(value, second.Fresh[name]) {
			t.Errorf("%s is %v in two runs", name, value)
		}
	}
	for name, seconds := range second.Clock {
		if seconds < 0 || seconds > 5 { // a fork must not show the zygote's age
			t.Errorf("%s: %v seconds", name, seconds)
		}
	}
}

// Random numbers differ in each of 50 runs, in their workers and in their contexts.
func TestForkedRandomness(t *testing.T) {
	o := harness.Forking(runtime.Options{})
	rt := harness.CreateExact(t, o)
	seen := map[string]bool{}
	for range harness.Fewer(50, 15) {
		res := harness.Run(t, rt, `
			import { randomUUID } from 'node:crypto'; import vm from 'node:vm'; import { Worker } from 'node:worker_threads';
			const worker = new Worker('require("worker_threads").parentPort.postMessage([Math.random(), require("crypto").randomUUID(), require("vm").runInNewContext("Math.random()")])', { eval: true });
			const theirs = await new Promise(r => worker.on('message', r));
			const inContexts = Array.from({ length: 3 }, () => vm.runInContext('Math.random()', vm.createContext()));
			__return([Math.random(), randomUUID(), ...theirs, ...inContexts, vm.runInNewContext('Math.random()')].map(String))`, runtime.RunOptions{})
		var values []string
		if err := json.Unmarshal(res.Value, &values); err != nil {
			t.Fatalf("%v: %s", err, res.Stderr)
		}
		for _, v := range values {
			if seen[v] {
				t.Errorf("%s occurs twice", v)
			}
			seen[v] = true
		}
	}
}
