package run

import (
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// TestAddonFindsItself: nothing that a process has loaded before takes the place of an
// addon's own functions.
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
