package permissions

import (
	"slices"
	"testing"

	"gaol/jail/kernel"
	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// With AllowDegraded, a kernel without notifications and without some limits, such as gVisor's, enforces the rest: a
// refused call fails, but is not reported. Without that option the kernel is not asked.
func TestKernelWithLess(t *testing.T) {
	if !slices.Contains(harness.Launchers, runtime.LauncherZygote) {
		t.Skip("where programs cannot start others, a start of Node by exec needs notifications")
	}
	probe := kernel.Probe
	defer func() { kernel.Probe = probe }()
	kernel.Probe = func() kernel.Profile { return kernel.Profile{kernel.Listener, kernel.SignalLimits} }
	for _, degraded := range []bool{false, true} {
		rt := harness.Create(t, runtime.Options{AllowDegraded: degraded, Permissions: policy.Permissions{ChildProcess: denied}})
		res := harness.Run(t, rt, `const limits = require('node:fs').readFileSync('/proc/self/limits', 'utf8');
			const { error } = require('node:child_process').spawnSync('/bin/true');
			__return([error?.code, /^Max pending signals +1024 /m.test(limits)])`, runtime.RunOptions{Format: runtime.FormatCommonJS})
		want := `["EPERM",true]`
		if degraded {
			want = `["EPERM",false]`
		}
		if string(res.Value) != want {
			t.Errorf("degraded %v: %s %s, want %s", degraded, res.Value, res.Stderr, want)
		}
		reported := slices.ContainsFunc(res.Denials, func(d policy.Denial) bool { return d.Source == policy.SourceSeccomp })
		if missing := rt.Missing(); reported == degraded || degraded != (len(missing) == 2) {
			t.Errorf("degraded %v: denials %v, missing %q", degraded, res.Denials, missing)
		}
	}
}
