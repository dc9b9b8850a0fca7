package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/snippets"
	"gaol/test/harness"
)

// packages has stubs of our own in the shape of real packages.
const packages = "../../runtime/snippets/testdata/packages/node_modules"

// newRunner returns a runner that is closed when the test ends.
func newRunner(t *testing.T, o snippets.Options) *snippets.Runner {
	t.Helper()
	base := harness.Options(runtime.Options{})
	o.Sandbox.Image, o.Sandbox.Store, o.Sandbox.CgroupParent = base.Image, base.Store, base.CgroupParent
	o.MaxConcurrent = cmp.Or(o.MaxConcurrent, 2)
	if o.NodeModules != "" {
		o.Cache = t.TempDir()
	}
	r, err := snippets.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func run(t *testing.T, r *snippets.Runner, in snippets.Input) *snippets.Output {
	t.Helper()
	if in.Timeout == 0 {
		in.Timeout = snippets.MaxTimeout // a busy machine may need longer than the default
	}
	out, err := r.Run(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	checkBounds(t, out)
	return out
}

// checkBounds checks what holds for any output, whatever the snippet does.
func checkBounds(t *testing.T, out *snippets.Output) {
	t.Helper()
	text, err := json.Marshal(out)
	var six map[string]any
	if err != nil || json.Unmarshal(text, &six) != nil || len(six) != 6 || len(text) > 16<<20 {
		t.Errorf("%d bytes of JSON with %d keys: %v", len(text), len(six), err)
	}
	total := 0
	for _, line := range out.Logs {
		total += len(line)
	}
	if len(out.Logs) > snippets.MaxLogs+1 || total > snippets.MaxLogBytes+200 || len(out.Facts)+len(out.Derived) > 1<<20 || len(out.Errors) > 20 {
		t.Errorf("%d lines of %d bytes, %d and %d bytes of state, %d errors", len(out.Logs), total, len(out.Facts), len(out.Derived), len(out.Errors))
	}
}

func permissions(t *testing.T, text string) policy.Permissions {
	t.Helper()
	p, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
