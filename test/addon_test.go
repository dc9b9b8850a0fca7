package test

import (
	"testing"

	"gaol/runtime"
)

// TestAddonFindsItself: nothing that a process has loaded before takes the place of an
// addon's own functions.
func TestAddonFindsItself(t *testing.T) {
	rt := create(t, runtime.Options{})
	at := install(t, rt, "addon/itself.node")
	res := run(t, rt, `
		const m = { exports: {} };
		process.dlopen(m, `+"`"+at+"`"+`);
		let binding = [];
		try { binding = Object.keys(process._linkedBinding('gaol')); } catch {}
		__return([m.exports.file, binding]);`, runtime.RunOptions{})
	if got, want := string(res.Value), `["`+at+`",[]]`; got != want {
		t.Errorf("value %s, want %s", got, want)
	}
}
