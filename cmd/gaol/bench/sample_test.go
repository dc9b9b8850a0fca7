package bench

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPercentiles(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, c := range []struct {
		times []float64
		p     int
		want  float64
	}{
		{[]float64{7}, 50, 7},
		{[]float64{7}, 95, 7},
		{[]float64{3, 1, 2}, 50, 2},
		{[]float64{4, 3, 1, 2}, 50, 2},
		{hundred, 50, 50},
		{hundred, 95, 95},
		{hundred, 100, 100},
	} {
		if got := (Samples{Exec: c.times}).percentiles(c.p); len(got) != 1 || got[Exec] != c.want {
			t.Errorf("percentile %d of %d samples is %v, want %v", c.p, len(c.times), got, c.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("the samples were sorted in place")
	}
}

// Both samplers take turns on each side.
func TestSample(t *testing.T) {
	var calls []string
	sampler := func(name string, value float64) sampler {
		return func(side Side) (float64, error) {
			calls = append(calls, name+" "+string(side))
			return value, nil
		}
	}
	s, base, err := sample(t.Context(), 2, []Side{Exec, Zygote}, sampler("take", 1), sampler("compare", 2))
	if err != nil {
		t.Fatal(err)
	}
	once := []string{"compare exec", "take exec", "compare zygote", "take zygote"}
	if diff := cmp.Diff(slices.Concat(once, once), calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Samples{{Exec: {1, 1}, Zygote: {1, 1}}, {Exec: {2, 2}, Zygote: {2, 2}}}, []Samples{s, base}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFailuresAreNoSamples(t *testing.T) {
	failure := errors.New("failed")
	s, _, err := sample(t.Context(), 3, []Side{Exec}, timed(func(Side) error { return failure }), nil)
	if !errors.Is(err, failure) || len(s) != 0 {
		t.Errorf("got %v and %v", err, s)
	}
	for _, bad := range [][2]string{{"hello", hello.value}, {hello.stdout, ""}} {
		if err := hello.check([]byte(bad[0]), []byte(bad[1])); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if err := hello.check([]byte(hello.stdout), []byte(hello.value)); err != nil {
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
	in, err1 := cat.StdinPipe()
	out, err2 := cat.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	before := descendants()
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cat.Wait(); err != nil {
			t.Error(err)
		}
	})
	if _, err := io.WriteString(in, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil { // its memory grows until it reads
		t.Fatal(err)
	}
	pids := descendants()
	if !slices.Contains(pids, cat.Process.Pid) || slices.Contains(pids, os.Getpid()) {
		t.Errorf("the descendants of %d are %v, want %d among them", os.Getpid(), pids, cat.Process.Pid)
	}
	rss, err1 := newMemory(before, "Rss")
	dirty, err2 := newMemory(before, "Private_Dirty")
	both, err3 := newMemory(before, "Private_Dirty", "Rss")
	if err := errors.Join(err1, err2, err3); err != nil || dirty <= 0 || rss < dirty || both <= rss {
		t.Errorf("a child has %v MB, %v of its own, and both are %v, %v", rss, dirty, both, err)
	}
	if _, err := newMemory(before, "Nonsense"); err == nil {
		t.Error("a missing field has a size")
	}
	if _, err := newMemory(descendants(), "Rss"); err == nil {
		t.Error("no new process has a size")
	}
}
