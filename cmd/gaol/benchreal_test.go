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
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"gaol/cmd/gaol/bench"
)

// realBench runs gaol bench in jails below a cgroup of the test's own, and checks that
// it leaves nothing behind.
func realBench(ctx context.Context, t *testing.T, args ...string) outcome {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make jails")
	}
	goroutines := goleak.IgnoreCurrent()
	parent := fmt.Sprintf("/gaol-bench-test-%d", os.Getpid())
	before := leftovers(parent)
	var stdout, stderr bytes.Buffer
	a := &app{stdout: &stdout, stderr: &stderr, measure: func(ctx context.Context, o bench.Options) (*bench.Report, error) {
		o.Create.CgroupParent = parent
		return measure(ctx, o)
	}}
	code := a.main(ctx, append([]string{"bench"}, args...))
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
	return outcome{code, stdout.String(), stderr.String()}
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
	got := realBench(t.Context(), t, "--samples", "3", "--quick", "--json")
	if got.code != 0 || got.stderr != "" {
		t.Fatalf("exit status %d: %s", got.code, got.stderr)
	}
	var object struct {
		Environment struct {
			Node, Kernel string
			Samples      int
			Quick        bool
		}
		Figures []struct {
			ID, Name, Unit string
			Values, Ratio  map[string]float64
			Bar, Goal      *float64
			Met            *bool
		}
	}
	d := json.NewDecoder(strings.NewReader(got.stdout))
	if err := d.Decode(&object); err != nil || d.More() {
		t.Fatalf("%v: want one object: %s", err, got.stdout)
	}
	if e := object.Environment; e.Node == "" || e.Kernel == "" || e.Samples != 3 || !e.Quick {
		t.Errorf("environment: %+v", e)
	}
	barred := strings.Fields(`run-p50 run-p99 run-consecutive throughput-4 create-run-close pool-get-run idle-memory program-memory
		compute json garbage files stream-callback run-strict create-snapshot project-snapshot call calls evaluate normalize live-many`)
	want := append(slices.Clone(barred), "files-snapshot", "overtime")
	if diff := cmp.Diff(want, bench.IDs()); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	if len(object.Figures) != len(want) {
		t.Errorf("%d figures, want %d", len(object.Figures), len(want))
	}
	for i, f := range object.Figures {
		if i < len(want) && f.ID != want[i] {
			t.Errorf("figure %d is %q, want %q", i, f.ID, want[i])
		}
		if f.Name == "" || f.Unit == "" || f.Values["exec"] <= 0 || f.Values["zygote"] <= 0 {
			t.Errorf("%s: %+v", f.ID, f)
		}
		if hasBar := i < len(barred); (f.Bar != nil) != hasBar || (f.Goal != nil) != hasBar || (f.Met != nil) != hasBar {
			t.Errorf("%s: want bar, goal and met together: %+v", f.ID, f)
		}
		if bare, ok := f.Values["bare"]; ok && (bare <= 0 || f.Ratio["exec"] <= 0 || f.Ratio["zygote"] <= 0) {
			t.Errorf("%s: no ratio to bare node: %+v", f.ID, f)
		}
	}
}

// TestBenchOnly measures a part, which takes no longer than that part.
func TestBenchOnly(t *testing.T) {
	got := realBench(t.Context(), t, "--samples", "3", "--quick", "--json", "--only", "run-p99,normalize")
	var object struct{ Figures []struct{ ID string } }
	if err := json.Unmarshal([]byte(got.stdout), &object); err != nil || got.code != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if f := object.Figures; len(f) != 2 || f[0].ID != "run-p99" || f[1].ID != "normalize" {
		t.Errorf("%+v", f)
	}
}

// TestBenchStopped interrupts a benchmark at different steps.
func TestBenchStopped(t *testing.T) {
	for _, after := range []time.Duration{50 * time.Millisecond, 700 * time.Millisecond, 3 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			interrupt := time.AfterFunc(after, func() { cancel(signalError{syscall.SIGINT}) })
			defer interrupt.Stop()
			got := realBench(ctx, t, "--samples", "3", "--quick", "--json")
			if want := (outcome{code: 130}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if !errors.Is(context.Cause(ctx), signalError{syscall.SIGINT}) {
				t.Error("the benchmark ended before it was interrupted")
			}
		})
	}
}
