package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"gaol/cmd/gaol/bench"
	"gaol/runtime"
	"gaol/test/tier"
)

// realBench measures in jails below a cgroup of the test's own, and checks that nothing is left behind.
func realBench(ctx context.Context, t *testing.T, args ...string) (stdout []byte, failed error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make jails")
	}
	goroutines := goleak.IgnoreCurrent()
	parent := fmt.Sprintf("/gaol-bench-test-%d", os.Getpid())
	before := leftovers(parent)
	var out bytes.Buffer
	failed = run(ctx, &out, args, runtime.Options{CgroupParent: parent})
	var left []string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		left = slices.DeleteFunc(leftovers(parent), func(s string) bool { return slices.Contains(before, s) })
		if len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	if len(left) > 0 {
		t.Errorf("left behind: %q, there was before: %q", left, before)
	}
	for _, dir := range append(glob("/sys/fs/cgroup"+parent), glob("/sys/fs/cgroup/*"+parent)...) {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	}
	if err := goleak.Find(goroutines); err != nil {
		t.Error(err)
	}
	return out.Bytes(), failed
}

// leftovers returns the cgroups below parent, their registered jails, this process's
// children and the folders of bare node's programs.
func leftovers(parent string) []string {
	found := append(glob("/sys/fs/cgroup"+parent+"/*/cgroup.procs"), glob("/sys/fs/cgroup/*"+parent+"/*/cgroup.procs")...)
	for _, slot := range glob("/run/gaol/jails/*.slot") {
		if text, _ := os.ReadFile(slot); strings.Contains(string(text), `"`+parent+`"`) {
			found = append(found, slot)
		}
	}
	for _, task := range glob("/proc/self/task/*/children") {
		text, _ := os.ReadFile(task)
		found = append(found, strings.Fields(string(text))...)
	}
	return append(found, glob("/dev/shm/gaol-bench-*")...)
}

func glob(pattern string) []string {
	found, err := filepath.Glob(pattern)
	if err != nil {
		panic(err) // the pattern is wrong
	}
	return found
}

// TestBenchForReal runs the whole benchmark with few samples. It does not check speeds.
func TestBenchForReal(t *testing.T) {
	tier.Soak(t)
	text, err := realBench(t.Context(), t, "-samples", "3", "-quick", "-json")
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		Environment struct {
			Node, Kernel string
			Samples      int
			Sides        []string
		}
		Figures []struct {
			ID, Name, Unit string
			Values, Ratio  map[string]float64
		}
		Verdicts []struct {
			Figure, Side string
			Bar, Goal    float64
			Met          *bool
		}
	}
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if e := object.Environment; e.Node == "" || e.Kernel == "" || e.Samples != 3 || len(e.Sides) != 2 {
		t.Errorf("environment: %+v", e)
	}
	var ids []string
	for _, f := range object.Figures {
		ids = append(ids, f.ID)
		if f.Name == "" || f.Unit == "" || f.Values["exec"] <= 0 || f.Values["zygote"] <= 0 {
			t.Errorf("%s: %+v", f.ID, f)
		}
		if bare, ok := f.Values["bare"]; ok && (bare <= 0 || f.Ratio["exec"] <= 0 || f.Ratio["zygote"] <= 0) {
			t.Errorf("%s: no ratio to bare node: %+v", f.ID, f)
		}
	}
	if diff := cmp.Diff(bench.IDs(new(fixtures).figures()), ids); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	if want := len(bars[bench.Zygote]) + len(bars[bench.Exec]); len(object.Verdicts) != want {
		t.Errorf("%d verdicts, want %d", len(object.Verdicts), want)
	}
	for _, v := range object.Verdicts {
		if v.Met == nil || v.Bar <= 0 || v.Goal <= 0 {
			t.Errorf("%+v", v)
		}
	}
}

// TestBenchOnly measures a part, which takes no longer than that part.
func TestBenchOnly(t *testing.T) {
	text, err := realBench(t.Context(), t, "-samples", "3", "-quick", "-only", "run-p99,normalize", "-sides", "exec")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"exec   warm run, p99 against p99", "exec   Normalize of 20 KB", "OVER: "} {
		if !strings.Contains(string(text), line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	for _, args := range [][]string{{"-only", "fast"}, {"-sides", "fork"}, {"-n", "3"}} {
		if err := run(t.Context(), &bytes.Buffer{}, args, runtime.Options{}); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

// TestBenchStopped interrupts a benchmark at different steps.
func TestBenchStopped(t *testing.T) {
	tier.Soak(t)
	interrupted := errors.New("interrupted")
	for _, after := range []time.Duration{50 * time.Millisecond, 700 * time.Millisecond, 3 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			interrupt := time.AfterFunc(after, func() { cancel(interrupted) })
			defer interrupt.Stop()
			text, err := realBench(ctx, t, "-samples", "3", "-quick", "-json")
			if err == nil || len(text) > 0 || context.Cause(ctx) != interrupted {
				t.Errorf("got %v and %s", err, text)
			}
		})
	}
}
