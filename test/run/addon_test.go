package run

import (
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// An addon's functions are its own, even if the process has loaded others of the same names
// before.
func TestAddonFindsItself(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	at := harness.Install(t, rt, "itself.node")
	res := harness.Run(t, rt, `
		const m = { exports: {} };
		process.dlopen(m, `+"`"+at+"`"+`);
		let binding = [];
		try { binding = Object.keys(process._linkedBinding('gaol')); } catch {}
		__return([m.exports.file, binding]);`, runtime.RunOptions{})
	if got, want := string(res.Value), `["`+at+`",[]]`; got != want {
		t.Errorf("value %s, want %s", got, want)
	}
}
