package program

import (
	"errors"
	"testing"
)

// What programs print is bounded.
func TestOutput(t *testing.T) {
	var o Output
	for range 3 {
		if n, err := o.Write(make([]byte, 3<<10)); n != 3<<10 || err != nil {
			t.Error(n, err)
		}
	}
	if len(o) != maxOutput {
		t.Errorf("%d bytes", len(o))
	}
}

func TestExplain(t *testing.T) {
	failed := errors.New("failed")
	for output, want := range map[string]string{"": "failed", "\n": "failed", "why\xff\n": "failed: wall: why?"} {
		if err := Output(output).Explain("wall", failed); err.Error() != want || !errors.Is(err, failed) {
			t.Errorf("%q: %v, want %s", output, err, want)
		}
	}
}
