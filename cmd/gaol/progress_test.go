package main

import "testing"

// Unless it prints JSON, a command reports the progress of building a missing image also where
// standard error is no terminal.
func TestProgress(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want bool
	}{
		{[]string{"run", "-e", ""}, true},
		{[]string{"run", "--json", "-e", ""}, false},
		{[]string{"eval", "-e", "1"}, true},
		{[]string{"eval", "--json", "-e", "1"}, false},
	} {
		var f fake
		if got := f.call(t, "", tc.args...); got.code != 0 {
			t.Fatalf("%q: %+v", tc.args, got)
		}
		if got := f.options.Progress != nil; got != tc.want {
			t.Errorf("%q: progress is reported: %v, want %v", tc.args, got, tc.want)
		}
	}
}
