package bench

import (
	"encoding/json"
	"math"
	"testing"
)

func TestBarMet(t *testing.T) {
	for _, tc := range []struct {
		name  string
		f     Figure
		ratio float64 // the zygote's
		want  string
	}{
		{"met", againstBare(runMedianID, "", "ms", Values{Bare: 100, Zygote: 22}), 0.22, "ok"},
		{"over", againstBare(runMedianID, "", "ms", Values{Bare: 100, Zygote: 23, Exec: 1}), 0.23, "OVER"},
		{"only exec", againstBare(runMedianID, "", "ms", Values{Bare: 100, Exec: 200}), 0, ""},
		{"enough", againstBare(clients4ID, "", "runs/s", Values{Bare: 10, Zygote: 40}), 4, "ok"},
		{"too few", againstBare(clients4ID, "", "runs/s", Values{Bare: 10, Zygote: 39}), 3.9, "OVER"},
		{"light", alone(idleMemoryID, "", "MB", Values{Zygote: 1}), 0, "ok"},
		{"heavy", againstBare(programMemoryID, "", "MB", Values{Bare: 1000, Zygote: 11}), 0.011, "OVER"},
		{"no bar", againstBare(createID, "", "ms", Values{Bare: 10, Zygote: 1000}), 100, ""},
		{"not flat", againstOwn(manyLiveID, "", "ms", Values{Exec: 3, Zygote: 3}, Values{Exec: 3, Zygote: 2}, "1"), 1.5, "OVER"},
		{"times as fast", timesAsFast(callHTTPID, "", "µs", Values{Bare: 200, Zygote: 40}, "HTTP"), 5, "ok"},
		{"not times as fast", timesAsFast(callHTTPID, "", "µs", Values{Bare: 200, Zygote: 50}, "HTTP"), 4, "OVER"},
		{"never as fast", timesAsFast(callHTTPID, "", "µs", Values{Bare: 200, Zygote: math.Inf(1)}, "HTTP"), 0, "OVER"},
		{"both met", againstBare(projectID, "", "ms", Values{Bare: 100, Exec: 115, Zygote: 114}), 1.14, "ok"},
		{"one of both over", againstBare(projectID, "", "ms", Values{Bare: 100, Exec: 116, Zygote: 114}), 1.14, "OVER"},
		{"the other of both over", againstBare(projectID, "", "ms", Values{Bare: 100, Exec: 114, Zygote: 116}), 1.16, "OVER"},
		{"exec is one of both", againstBare(projectID, "", "ms", Values{Bare: 100, Exec: 116}), 0, "OVER"},
		{"calls alone", againstBare(overlayFilesID, "", "ms", Values{Bare: 100, Exec: 200, Zygote: 200}), 2, ""},
		{"nothing measured", againstBare(runMedianID, "", "ms", Values{Bare: 0, Zygote: 0}), math.NaN(), "OVER"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.f.result(); got != tc.want {
				t.Errorf("%+v is %q, want %q", tc.f, got, tc.want)
			}
			if got := tc.f.Ratio[Zygote]; math.Abs(got-tc.ratio) > 1e-9 {
				t.Errorf("ratio %v, want %v", got, tc.ratio)
			}
		})
	}
}

// The goal is better than the bar.
func TestBars(t *testing.T) {
	for id, b := range bars {
		better := b.Goal <= b.Limit
		if b.AtLeast {
			better = b.Goal >= b.Limit
		}
		if !better || b.Limit <= 0 {
			t.Errorf("%s: the goal of %+v is not better than the bar", id, b)
		}
	}
}

func TestFigureJSON(t *testing.T) {
	for _, tc := range []struct {
		f    Figure
		want string
	}{
		{
			againstBare(clients4ID, "n", "runs/s", Values{Bare: 10, Zygote: 40}),
			`{"id":"throughput-4","name":"n","unit":"runs/s","values":{"bare":10,"zygote":40},"ratio":{"zygote":4},"against":"bare node","bar":4,"goal":8,"atLeast":true,"met":true}`,
		},
		{
			alone(idleMemoryID, "n", "MB", Values{Zygote: 2}),
			`{"id":"idle-memory","name":"n","unit":"MB","values":{"zygote":2},"bar":1,"goal":0.3,"ofValue":true,"met":false}`,
		},
		{
			againstBare(projectID, "n", "ms", Values{Bare: 10, Exec: 11}),
			`{"id":"project-snapshot","name":"n","unit":"ms","values":{"bare":10,"exec":11},"ratio":{"exec":1.1},"against":"bare node","bar":1.15,"goal":1.02,"both":true,"met":true}`,
		},
		{
			alone(overtimeID, "n", "ms", Values{Exec: 5}),
			`{"id":"overtime","name":"n","unit":"ms","values":{"exec":5}}`,
		},
	} {
		got, err := json.Marshal(tc.f)
		if err != nil || string(got) != tc.want {
			t.Errorf("%v\n got %s\nwant %s", err, got, tc.want)
		}
	}
}
