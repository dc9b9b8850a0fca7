package main

import (
	"math"
	"strings"
	"testing"

	"gaol/cmd/gaol/bench"
)

// figure returns the figure of that id with one sample of each side, and of each side of
// base.
func figure(id string, s, base bench.Values) bench.Figure {
	samples := func(v bench.Values) bench.Samples {
		s := bench.Samples{}
		for side, value := range v {
			s[side] = []float64{value}
		}
		return s
	}
	for _, f := range new(fixtures).figures() {
		if f.ID == id {
			return f.Measured(samples(s), samples(base))
		}
	}
	panic("no figure " + id)
}

func TestBarMet(t *testing.T) {
	const bare, exec, zygote = bench.Bare, bench.Exec, bench.Zygote
	type values = bench.Values
	for _, tc := range []struct {
		name  string
		f     bench.Figure
		side  bench.Side
		ratio float64
		want  string
	}{
		{"met", figure("run-p50", values{bare: 100, zygote: 12}, nil), zygote, 0.12, "ok  bar <= 0.12, goal 0.10"},
		{"over", figure("run-p50", values{bare: 100, zygote: 13, exec: 1}, nil), zygote, 0.13, "OVER"},
		{"only exec", figure("run-p50", values{bare: 100, exec: 200}, nil), zygote, 0, ""},
		{"none for exec", figure("run-p50", values{bare: 100, exec: 200}, nil), exec, 2, ""},
		{"enough", figure("throughput-4", values{bare: 10, zygote: 60}, nil), zygote, 6, "ok  bar >= 6.00"},
		{"too few", figure("throughput-4", values{bare: 10, zygote: 59}, nil), zygote, 5.9, "OVER"},
		{"light", figure("idle-memory", values{zygote: 1}, nil), zygote, 0, "ok  bar <= 1.00 MB"},
		{"heavy", figure("program-memory", values{bare: 1000, zygote: 11}, nil), zygote, 0.011, "OVER"},
		{"no bar", figure("files-snapshot", values{bare: 10, zygote: 1000}, nil), zygote, 100, ""},
		{"not flat", figure("live-many", values{exec: 3, zygote: 3}, values{exec: 3, zygote: 2}), zygote, 1.5, "OVER"},
		{"value met, ratio not", figure("call", values{bare: 10, zygote: 40}, nil), zygote, 4, "ok"},
		{"exec over", figure("project-snapshot", values{bare: 100, exec: 116, zygote: 114}, nil), exec, 1.16, "OVER"},
		{"exec's neighbor", figure("project-snapshot", values{bare: 100, exec: 116, zygote: 114}, nil), zygote, 1.14, "ok"},
		{"runc over", figure("run-p50", values{bare: 25, "native": 5, "runc": 75}, nil), "runc", 3, "OVER  bar <= 2.20"},
		{"native beside runc", figure("run-p50", values{bare: 25, "native": 5, "runc": 75}, nil), "native", 0.2, ""},
		{"nothing measured", figure("run-p50", values{bare: 0, zygote: 0}, nil), zygote, math.NaN(), "OVER"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := note(tc.f, tc.side)
			if !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("%+v: %q, want %q", tc.f, got, tc.want)
			}
			if got := tc.f.Ratio[tc.side]; math.Abs(got-tc.ratio) > 1e-9 {
				t.Errorf("ratio %v, want %v", got, tc.ratio)
			}
		})
	}
}

// The goal is better than the bar, no two figures have the same id, and each bar is for one of them.
func TestFigures(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range new(fixtures).figures() {
		if seen[f.ID] {
			t.Errorf("two figures are called %s", f.ID)
		}
		seen[f.ID] = true
	}
	for side, list := range bars {
		for id, b := range list {
			if !seen[id] {
				t.Errorf("%s: a bar for %s, which is not a figure", side, id)
			}
			if b.Limit <= 0 || !b.met(b.Goal) {
				t.Errorf("%s, %s: the goal of %+v is not better than the bar", side, id, b)
			}
		}
	}
}
