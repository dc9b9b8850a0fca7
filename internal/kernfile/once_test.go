package kernfile

import (
	"errors"
	"testing"
)

func TestOnce(t *testing.T) {
	calls := 0
	get := Once(func() (int, error) {
		calls++
		if calls < 3 {
			return 0, errors.New("too many open files")
		}
		return calls, nil
	})
	for i := range 5 {
		n, err := get()
		if want := i >= 2; (err == nil) != want || want && n != 3 {
			t.Errorf("call %d: %d, %v", i, n, err)
		}
	}
	if calls != 3 {
		t.Errorf("%d calls", calls)
	}
}
