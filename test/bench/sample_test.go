package bench

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make(Times, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for _, c := range []struct {
		times Times
		p     int
		want  time.Duration
	}{
		{nil, 50, 0},
		{Times{7}, 50, 7},
		{Times{7}, 95, 7},
		{Times{3, 1, 2}, 50, 2},
		{Times{4, 3, 1, 2}, 50, 2},
		{hundred, 50, 50},
		{hundred, 95, 95},
		{hundred, 100, 100},
	} {
		if got := c.times.Percentile(c.p); got != c.want {
			t.Errorf("percentile %d of %d samples is %d, want %d", c.p, len(c.times), got, c.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("the samples were sorted in place")
	}
}

func TestFailuresAreNoSamples(t *testing.T) {
	failure := errors.New("failed")
	var times Times
	if err := times.time(func() error { return failure }); err != failure || len(times) != 0 {
		t.Errorf("got %v and %d samples", err, len(times))
	}
	if err := checkOutput([]byte("hello")); err == nil {
		t.Error("other output is accepted")
	}
}

func TestSliceEndsAfterFailures(t *testing.T) {
	failure := errors.New("failed")
	var rates Rates
	if err := rates.slice(4, func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

func TestTable(t *testing.T) {
	r := &Report{
		Bare:     Times{10 * time.Millisecond},
		LaterRun: Times{31 * time.Millisecond},
		Clients:  []Throughput{{Clients: 2, Runs: Rates{30}, Bare: Rates{60}}},
		Idle:     Memory{Processes: 1, PSS: 64 << 10},
	}
	var out bytes.Buffer
	if err := r.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3.10", "≤ 3.0: MISSED", "0.50", "PSS 64 KiB"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	r.Metrics(func(_ float64, unit string) {
		if strings.ContainsAny(unit, " \t\n") {
			t.Errorf("unit %q: the benchmark format has no room for white space", unit)
		}
	})
}

func TestMemoryOfChild(t *testing.T) {
	cat := exec.Command("cat")
	in, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(); err != nil {
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
	if pss, err := proportionalSize(cat.Process.Pid); err != nil || pss <= 0 {
		t.Errorf("PSS of a child: %d, %v", pss, err)
	}
}
