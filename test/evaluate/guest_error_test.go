package evaluate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// Result.Error is the error that ended the program. Reporting it does not change how the
// program ends.
func TestRunError(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for _, tc := range []struct {
		name, code string
		want       string // Name: Message; empty: none
		stack      string // a part
		exit       int
		stderr     string // a part
	}{
		{name: "thrown", code: "\nthrow new RangeError('no')", want: "RangeError: no", stack: "RangeError: no\n    at file:///run/gaol/N/main.mjs:2:7", exit: 1, stderr: "file:///run/gaol/N/main.mjs:2\nthrow new RangeError('no')\n      ^\n\nRangeError: no\n"},
		{name: "text", code: `throw 'text'`, want: "text", exit: 1, stderr: "text\n(Use `node --trace-uncaught"},
		{name: "rejected", code: `Promise.reject(new Error('no'))`, want: "Error: no", exit: 1},
		{name: "in a timer", code: `setTimeout(() => { throw new Error('tick') })`, want: "Error: tick", exit: 1},
		{name: "its syntax", code: "1;\nlet a = = 1", want: "SyntaxError: Unexpected token '='", stack: "main.mjs:2:9", exit: 1, stderr: "let a = = 1\n        ^\n"},
		{name: "caught", code: `try { throw new Error('no') } catch {}; process.exit(3)`, exit: 3},
		{name: "handled", code: `process.on('uncaughtException', () => { process.exitCode = 4 }); throw new Error('no')`, exit: 4},
		{name: "handled from the monitor on", code: `process.on('uncaughtExceptionMonitor', () => process.on('uncaughtException', () => {})); throw new Error('no')`},
		{name: "an exit handler", code: `process.on('exit', c => { console.error('bye', c); process.exit(5) }); throw new Error('no')`, want: "Error: no", exit: 5, stderr: "bye 1"},
		{name: "a handler that throws", code: `process.on('uncaughtException', () => { throw new Error('again') }); throw new Error('no')`, exit: 7, stderr: "Error: again"},
		{name: "a monitor of its own", code: `process.on('uncaughtExceptionMonitor', (e, from) => console.error(from, process.listenerCount('uncaughtExceptionMonitor'))); throw new Error('no')`, want: "Error: no", exit: 1, stderr: "unhandledRejection 1\n"},
		{name: "no trace", code: `console.error(process.listenerCount('uncaughtExceptionMonitor'), process.eventNames().includes('uncaughtExceptionMonitor')); process.on('uncaughtException', () => console.error(new Error('x').stack)); null.x`, stderr: "0 false\nError: x\n    at process.<anonymous> (file:///run/gaol/N/main.mjs:1:178)\n    at process.emit ("},
		{name: "descriptor 3 closed", code: `import fs from 'node:fs'; fs.closeSync(3); throw new Error('no')`, exit: 1, stderr: "Error: no"},
		{name: "a getter", code: `throw Object.defineProperty(new Error('x'), 'message', { get() { throw new Error('spoilt') } })`, want: "an error that can not be looked at", exit: 1},
	} {
		for what, res := range map[string]*runtime.Result{"Run": harness.Run(t, rt, tc.code, runtime.RunOptions{}), "Exec": execCode(t, rt, tc.code)} {
			got := &runtime.GuestError{}
			if res.Error != nil {
				got = res.Error
			}
			if got.Error() != tc.want || !strings.Contains(harness.UnnumberPrograms([]byte(got.Stack)), tc.stack) || res.ExitCode != tc.exit || !strings.Contains(harness.UnnumberPrograms(res.Stderr), tc.stderr) || strings.Contains(string(res.Stderr), "/usr/libexec") {
				t.Errorf("%s, %s: %q\n%s\nexit code %d, %s", what, tc.name, got.Error(), got.Stack, res.ExitCode, res.Stderr)
			}
		}
	}
}

func execCode(t *testing.T, rt *runtime.NodeRuntime, code string) *runtime.Result {
	t.Helper()
	res, err := rt.Exec(t.Context(), code, runtime.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

const wealthy = `Object.defineProperty(Object.assign(new Error('outer', { cause: Object.assign(new TypeError('inner'), { code: 42 }) }), {
	code: 'E_OWN', path: '/ü', list: new Map([['a', [1]]]), self: globalThis, f() {}, big: 'x'.repeat(1e6), n: 1n }), 'getter', { enumerable: true, get() { throw 1 } })`

// An error keeps its code, its own properties that have JSON, and its cause.
func TestGuestErrorProperties(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	c, err := rt.NewContext(t.Context(), runtime.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cell, err := c.Evaluate(t.Context(), "throw "+wealthy, runtime.EvaluateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]*runtime.GuestError{
		"Run": harness.Run(t, rt, "throw "+wealthy, runtime.RunOptions{}).Error, "Evaluate": harness.Evaluate(t, rt, "throw "+wealthy, runtime.EvaluateOptions{}).Error, "a cell": cell.Error,
	} {
		if got == nil || got.Code != "E_OWN" || got.Cause == nil || got.Cause.Error() != "TypeError: inner" || got.Cause.Code != "42" || got.Cause.Stack == "" {
			t.Errorf("%s: %+v", what, got)
			continue
		}
		properties, err := json.Marshal(got.Properties)
		if want := `{"list":{"a":[1]},"path":"/ü"}`; err != nil || string(properties) != want {
			t.Errorf("%s: %s, want %s", what, properties, want)
		}
	}
	res := harness.Run(t, rt, `import fs from 'node:fs'; fs.readFileSync('/nosuch')`, runtime.RunOptions{})
	if e := res.Error; e == nil || e.Code != "ENOENT" || string(e.Properties["syscall"]) != `"open"` || string(e.Properties["path"]) != `"/nosuch"` || string(e.Properties["errno"]) != "-2" {
		t.Errorf("of a file: %+v", e)
	}
}

// Whatever a hostile program writes to the descriptor for errors, it is at most an error.
func TestRunErrorHostile(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	const frame = `import fs from 'node:fs';
		const frame = (text) => { const b = Buffer.from('     ' + text); b.writeUInt32BE(b.length - 4); b[4] = 4; fs.writeSync(3, b) };`
	deep := strings.Repeat(`{"cause":`, 100) + `{}` + strings.Repeat(`}`, 100)
	for code, want := range map[string]string{
		`frame('{"name":"Forged","message":"m","stack":""}'); process.exit(1)`:                      "Forged: m",
		`frame('{"name":"Forged","message":"m","stack":""}')`:                                       "", // the program succeeded
		`frame('{"name":"Forged","message":"m","stack":""}'); process.kill(process.pid, 'SIGKILL')`: "",
		`frame('{"name":"Forged","extra":1}'); process.exit(1)`:                                     "",
		`frame('` + deep + `'); process.exit(1)`:                                                    "",
		`frame('"' + 'x'.repeat(1 << 20) + '"'); process.exit(1)`:                                   "",
		`frame('{"message":"' + 'x'.repeat(200000) + '"}'); process.exit(1)`:                        strings.Repeat("x", 16<<10) + "…",
	} {
		res := harness.Run(t, rt, frame+code, runtime.RunOptions{})
		got := ""
		if res.Error != nil {
			got = res.Error.Error()
		}
		if got != want {
			t.Errorf("%.100s: %.100s, want %.100s", code, got, want)
		}
	}
}

func TestDecode(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for code, want := range map[string]string{
		`__return(1)`:                       "",
		`__return(1); process.exit(3)`:      "",
		`throw new TypeError('no')`:         "TypeError: no",
		`__return(1); throw new Error('x')`: "Error: x",
		`1`:                                 "gaol: the program returned no value",
		`process.exit(3)`:                   "gaol: the program returned no value: it ended with exit code 3",
		`process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000)`: "gaol: the program returned no value: it was ended, cause signal",
	} {
		var n int
		err := harness.Run(t, rt, code, runtime.RunOptions{}).Decode(&n)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("%s: %v, want %s", code, err, want)
		}
		if guest, ok := errors.AsType[*runtime.GuestError](err); !ok && err != nil && !errors.Is(err, runtime.ErrNoValue) {
			t.Error(fmt.Sprint(code, err, guest))
		}
	}
}
