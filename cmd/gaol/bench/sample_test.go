package bench

import (
	"errors"
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

func TestSample(t *testing.T) {
	var calls []Side
	s, _, err := Sample(t.Context(), 2, []Side{Exec, Zygote}, func(side Side) (float64, error) {
		calls = append(calls, side)
		return 1, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Side{Exec, Zygote, Exec, Zygote}, calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Samples{Exec: {1, 1}, Zygote: {1, 1}}, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFailuresAreNoSamples(t *testing.T) {
	failure := errors.New("failed")
	s, _, err := Sample(t.Context(), 3, []Side{Exec}, Timed(func(Side) error { return failure }))
	if !errors.Is(err, failure) || len(s) != 0 {
		t.Errorf("got %v and %v", err, s)
	}
	for _, bad := range [][2]string{{"hello", Hello.Value}, {Hello.Stdout, ""}} {
		if err := Hello.check([]byte(bad[0]), []byte(bad[1])); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if err := Hello.check([]byte(Hello.Stdout), []byte(Hello.Value)); err != nil {
		t.Error(err)
	}
}

func TestRateStopsAfterFailures(t *testing.T) {
	failure := errors.New("failed")
	if _, err := rate(4, func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}
