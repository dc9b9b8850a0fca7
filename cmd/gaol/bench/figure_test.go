package bench

import (
	"encoding/json"
	"math"
	"testing"
)

// figure returns the figure of that id with one sample of each side, and of each side of
// base.
func figure(id string, s, base Values) Figure {
	samples := func(v Values) Samples {
		s := Samples{}
		for side, value := range v {
			s[side] = []float64{value}
		}
		return s
	}
	for _, f := range figures {
		if f.ID == id {
			return f.measured(samples(s), samples(base))
		}
	}
	panic("no figure " + id)
}

func TestBarMet(t *testing.T) {
	for _, tc := range []struct {
		name  string
		f     Figure
		ratio float64 // the zygote's
		want  string
	}{
		{"met", figure("run-p50", Values{Bare: 100, Zygote: 12}, nil), 0.12, "ok"},
		{"over", figure("run-p50", Values{Bare: 100, Zygote: 13, Exec: 1}, nil), 0.13, "OVER"},
		{"only exec", figure("run-p50", Values{Bare: 100, Exec: 200}, nil), 0, ""},
		{"enough", figure("throughput-4", Values{Bare: 10, Zygote: 60}, nil), 6, "ok"},
		{"too few", figure("throughput-4", Values{Bare: 10, Zygote: 59}, nil), 5.9, "OVER"},
		{"light", figure("idle-memory", Values{Zygote: 1}, nil), 0, "ok"},
		{"heavy", figure("program-memory", Values{Bare: 1000, Zygote: 11}, nil), 0.011, "OVER"},
		{"no bar", figure("files-snapshot", Values{Bare: 10, Zygote: 1000}, nil), 100, ""},
		{"not flat", figure("live-many", Values{Exec: 3, Zygote: 3}, Values{Exec: 3, Zygote: 2}), 1.5, "OVER"},
		{"value met, ratio not", figure("call", Values{Bare: 10, Zygote: 40}, nil), 4, "ok"},
		{"both met", figure("project-snapshot", Values{Bare: 100, Exec: 115, Zygote: 114}, nil), 1.14, "ok"},
		{"one of both over", figure("project-snapshot", Values{Bare: 100, Exec: 116, Zygote: 114}, nil), 1.14, "OVER"},
		{"the other of both over", figure("project-snapshot", Values{Bare: 100, Exec: 114, Zygote: 116}, nil), 1.16, "OVER"},
		{"exec is one of both", figure("project-snapshot", Values{Bare: 100, Exec: 116}, nil), 0, "OVER"},
		{"nothing measured", figure("run-p50", Values{Bare: 0, Zygote: 0}, nil), math.NaN(), "OVER"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.f.barCells()[2]; got != tc.want {
				t.Errorf("%+v is %q, want %q", tc.f, got, tc.want)
			}
			if got := tc.f.Ratio[Zygote]; math.Abs(got-tc.ratio) > 1e-9 {
				t.Errorf("ratio %v, want %v", got, tc.ratio)
			}
		})
	}
}

// The goal is better than the bar, and no two figures have the same id.
func TestFigures(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range figures {
		if seen[f.ID] {
			t.Errorf("two figures are called %s", f.ID)
		}
		seen[f.ID] = true
		if b := f.Bar; b != nil && (b.Limit <= 0 || !b.met(b.Goal)) {
			t.Errorf("%s: the goal of %+v is not better than the bar", f.ID, b)
		}
	}
}

func TestFigureJSON(t *testing.T) {
	for _, tc := range []struct {
		f    Figure
		want string
	}{
		{
			figure("throughput-4", Values{Bare: 10, Zygote: 60}, nil),
			`{"id":"throughput-4","name":"n","unit":"runs/s","values":{"bare":10,"zygote":60},"ratio":{"zygote":6},"against":"bare node","bar":6,"goal":8,"atLeast":true,"met":true}`,
		},
		{
			figure("idle-memory", Values{Zygote: 2}, nil),
			`{"id":"idle-memory","name":"n","unit":"MB","values":{"zygote":2},"bar":1,"goal":0.3,"ofValue":true,"met":false}`,
		},
		{
			figure("project-snapshot", Values{Bare: 10, Exec: 11}, nil),
			`{"id":"project-snapshot","name":"n","unit":"ms","values":{"bare":10,"exec":11},"ratio":{"exec":1.1},"against":"bare node","bar":1.15,"goal":1.02,"both":true,"met":true}`,
		},
		{
			figure("evaluate", Values{Exec: 5}, Values{Exec: 4}),
			`{"id":"evaluate","name":"n","unit":"ms","values":{"exec":5},"ratio":{"exec":1.25},"against":"Run of the same","bar":1.2,"goal":1.05}`,
		},
	} {
		tc.f.Name = "n"
		got, err := json.Marshal(tc.f)
		if err != nil || string(got) != tc.want {
			t.Errorf("%v\n got %s\nwant %s", err, got, tc.want)
		}
	}
}
