package runtime

import (
	_ "embed"
	"testing"
	"time"
)

//go:embed guest/prelude.test.mjs
var preludeTest string

// The tests of the guest's half run where it runs: in a runtime, by the Node of the
// image.
func TestPrelude(t *testing.T) {
	rt, err := Create(t.Context(), Options{Limits: Limits{Memory: 512 << 20, CPUs: 2}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	res, err := rt.Exec(t.Context(), preludeTest, RunOptions{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if res.ExitCode != 0 {
		t.Errorf("exit code %d, cause %q\n%s%s", res.ExitCode, res.Cause, res.Stdout, res.Stderr)
	}
	t.Logf("%s", res.Stdout)
}
