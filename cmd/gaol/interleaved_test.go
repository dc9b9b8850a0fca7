package main

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
)

func TestInterleaved(t *testing.T) {
	f := fake{guest: func(_ context.Context, o runtime.RunOptions) (*runtime.Result, error) {
		o.OnStdout([]byte("a"))
		o.OnStdout([]byte("b\xc3"))
		o.OnStderr([]byte("err"))
		o.OnStdout([]byte("\xbcmore"))
		o.OnStderr([]byte("\xff\xe2\x82"))
		return &runtime.Result{}, nil
	}}
	for args, want := range map[string][]outputPiece{
		"16m": {{"stdout", "ab"}, {"stderr", "err"}, {"stdout", "ümore"}, {"stderr", "\ufffd\ufffd\ufffd"}},
		"3":   {{"stdout", "ab"}, {"stderr", "err"}, {"stdout", "\ufffd"}},
	} {
		got := f.call(t, "", "run", "--json", "--interleave", "--max-output", args, "-e", "1")
		var object struct{ Output []outputPiece }
		if err := json.Unmarshal([]byte(got.stdout), &object); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, object.Output); diff != "" || got.stderr != "" {
			t.Errorf("--max-output %s: (-want +got)\n%s%s", args, diff, got.stderr)
		}
	}
	checkFailure(t, f.call(t, "", "run", "--interleave", "-e", "1"), "--interleave goes with --json")
}
