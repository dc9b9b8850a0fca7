package kernel

import "testing"

func TestParseSlow(t *testing.T) {
	for text, want := range map[string]float64{"": 1, "1": 1, "2.5": 2.5, "200": 200} {
		if got, err := parseSlow(text); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0", "0.5", "-1", "201", "NaN", "Inf", "fast", " 2"} {
		if got, err := parseSlow(text); got != 1 || err == nil {
			t.Errorf("%q: %v, %v, want an error", text, got, err)
		}
	}
}
