package jail

import "testing"

func TestInnermostPID(t *testing.T) {
	for text, want := range map[string]int{
		"Name:\tx\nNSpid:\t17\t5\t3\nNSpgid:\t1\n": 3,
		"pos:\t0\nPid:\t4\nNSpid:\t4\t2\n":         2,
		"Name:\tx\nPid:\t4\n":                      0,
		"":                                         0,
	} {
		if got := innermostPID([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
