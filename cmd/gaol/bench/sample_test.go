package bench

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"

	"gaol/runtime"
)

func TestPercentile(t *testing.T) {
	hundred := make(Series, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, c := range []struct {
		times Series
		p     int
		want  float64
	}{
		{nil, 50, 0},
		{Series{7}, 50, 7},
		{Series{7}, 95, 7},
		{Series{3, 1, 2}, 50, 2},
		{Series{4, 3, 1, 2}, 50, 2},
		{hundred, 50, 50},
		{hundred, 95, 95},
		{hundred, 100, 100},
	} {
		if got := c.times.Percentile(c.p); got != c.want {
			t.Errorf("percentile %d of %d samples is %v, want %v", c.p, len(c.times), got, c.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("the samples were sorted in place")
	}
}

func TestFailuresAreNoSamples(t *testing.T) {
	failure := errors.New("failed")
	var times Series
	if err := times.time(func() error { return failure }); err != failure || len(times) != 0 {
		t.Errorf("got %v and %d samples", err, len(times))
	}
	good := runtime.Result{Stdout: []byte(hello.stdout), Value: []byte(hello.value)}
	for name, change := range map[string]func(*runtime.Result){
		"output":    func(r *runtime.Result) { r.Stdout = []byte("hello") },
		"value":     func(r *runtime.Result) { r.Value = nil },
		"exit code": func(r *runtime.Result) { r.ExitCode = 1 },
	} {
		bad := good
		change(&bad)
		if err := hello.check(&bad); err == nil {
			t.Errorf("another %s is accepted", name)
		}
	}
	if err := hello.check(&good); err != nil {
		t.Error(err)
	}
}

func TestRateStopsAfterFailures(t *testing.T) {
	failure := errors.New("failed")
	if _, err := rate(4, func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

func TestMemoryOfChild(t *testing.T) {
	cat := exec.Command("cat")
	in, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	rss, err := newMemory(cat.Start, "Rss")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cat.Wait(); err != nil {
			t.Error(err)
		}
	})
	pids, err := descendants()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(pids, cat.Process.Pid) || slices.Contains(pids, os.Getpid()) {
		t.Errorf("the descendants of %d are %v, want %d among them", os.Getpid(), pids, cat.Process.Pid)
	}
	dirty, err1 := processMemory(cat.Process.Pid, "Private_Dirty")
	both, err2 := processMemory(cat.Process.Pid, "Private_Dirty", "Rss")
	if err := errors.Join(err1, err2); err != nil || rss <= 0 || dirty <= 0 || both <= dirty {
		t.Errorf("a child has %d when it starts, %d of its own, and %d with what it shares, %v", rss, dirty, both, err)
	}
	if _, err := processMemory(os.Getpid(), "Nonsense"); err == nil {
		t.Error("a missing field has a size")
	}
}
