package gvisor

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gaol/jail/kernel"
	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// setProfile makes the kernel lack features, until the test ends.
func setProfile(t *testing.T, lacking ...kernel.Feature) {
	probe := kernel.Probe
	t.Cleanup(func() { kernel.Probe = probe })
	kernel.Probe = func() kernel.Profile { return lacking }
}

// With AllowDegraded, a kernel without notifications and without some limits, such as gVisor's, enforces the rest: a
// refused call fails, but is not reported. Without that option, its features are used.
func TestKernelWithLess(t *testing.T) {
	setProfile(t, kernel.Listener, kernel.SignalLimits, kernel.LowPorts, kernel.NetModes, kernel.SocketLists)
	all := []runtime.Options{{}, {AllowDegraded: true}, {Launcher: runtime.LauncherExec}, {Launcher: runtime.LauncherExec, AllowDegraded: true}}
	for _, o := range all {
		o.Permissions.ChildProcess.Default = policy.Deny
		degraded := o.AllowDegraded
		if o.Launcher == runtime.LauncherExec && degraded { // which needs notifications to start Node
			if err := harness.CreateError(t, o); !strings.Contains(err.Error(), "launcher exec") {
				t.Error(err)
			}
			continue
		}
		rt := harness.Create(t, o)
		res := harness.Run(t, rt, `const limits = require('node:fs').readFileSync('/proc/self/limits', 'utf8');
			const { error } = require('node:child_process').spawnSync('/bin/true');
			const listener = require('node:net').createServer().on('error', (err) => __return([error?.code, /^Max pending signals +1024 /m.test(limits), err.code]));
			listener.listen(80, () => { listener.close(); __return([error?.code, /^Max pending signals +1024 /m.test(limits), 'listens']); });`, runtime.RunOptions{Format: runtime.FormatCommonJS})
		want := `["EPERM",true,"listens"]`
		if degraded {
			want = `["EPERM",false,"EACCES"]`
		}
		if string(res.Value) != want {
			t.Errorf("degraded %v: %s %s, want %s", degraded, res.Value, res.Stderr, want)
		}
		reported := slices.ContainsFunc(res.Denials, func(d policy.Denial) bool { return d.Source == policy.SourceSeccomp })
		if missing := rt.Missing(); reported == degraded || degraded != (len(missing) == 4) {
			t.Errorf("degraded %v: denials %v, missing %q", degraded, res.Denials, missing)
		}
	}
}

// A kernel that accepts limits of memory and does not enforce them needs AllowDegraded.
func TestKernelWithoutLimits(t *testing.T) {
	setProfile(t, kernel.GroupLimits)
	if err := harness.CreateError(t, runtime.Options{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	rt := harness.Create(t, runtime.Options{AllowDegraded: true})
	if res := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" || len(rt.Missing()) != 1 {
		t.Errorf("%+v, missing %q", res, rt.Missing())
	}
}
