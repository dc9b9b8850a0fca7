package main

import "testing"

func TestTTYRefuses(t *testing.T) {
	for _, tc := range []struct {
		args []string
		text string
	}{
		{[]string{"run", "--tty", "-e", "1"}, "standard input is not a terminal"},
		{[]string{"run", "--tty", "--json", "-e", "1"}, "--tty and --json exclude each other"},
		{[]string{"run", "--tty", "--stdin", "-e", "1"}, "--tty and --stdin exclude each other"},
		{[]string{"run", "--tty", "--max-output", "1k", "-e", "1"}, "--tty and --max-output exclude each other"},
		{[]string{"run", "--tty", "-"}, "- and --tty exclude each other"},
	} {
		var f fake
		got := f.call(t, "", tc.args...)
		checkFailure(t, got, tc.text)
		if f.closed != 0 || f.code != "" {
			t.Errorf("%q: a sandbox was created", tc.args)
		}
	}
}
