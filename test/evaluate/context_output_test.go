package evaluate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
	"gaol/test/harness"
)

// untilReady waits until cells have made the folder ready.
func untilReady(t testing.TB, rt *runtime.NodeRuntime) {
	t.Helper()
	harness.WaitFor(t, "the folder ready", func() bool {
		_, err := rt.FS().Stat("/workspace/ready")
		return err == nil
	})
}

// What happens after a cell's end is reported with the next cell, and does no harm.
func TestContextBetweenCells(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Bindings: bindings()})
	c := newContext(t, rt, runtime.ContextOptions{})
	first := cell(t, c, `
		let called = 'no', thrown = '', n = 0;
		setTimeout(() => { console.warn('left', 'over'); process.stdout.write('raw\n') }, 5);
		setTimeout(() => { try { echo(1) } catch (err) { called = err.code } }, 5);
		setTimeout(() => { Promise.reject(new Error('unseen')) }, 10);
		setTimeout(() => { throw new Error('thrown') }, 15);
		process.on('uncaughtExceptionMonitor', (err) => thrown = err.message);
		const ready = setInterval(() => {
			if (++n < 4 || called === 'no' || thrown !== 'thrown') return;
			require('node:fs').mkdirSync('ready');
			clearInterval(ready);
		}, 5).unref();
		const asked = echo.async('early');
		1`, runtime.EvaluateOptions{})
	untilReady(t, rt)
	e := cell(t, c, `console.log('own'); [called, n > 3, await asked]`, runtime.EvaluateOptions{})
	if string(e.Value) != `["ERR_NO_CELL",true,["early"]]` || e.Error != nil || len(e.Calls) != 0 {
		t.Errorf("%s %v %+v", e.Value, e.Error, e.Calls)
	}
	var console, raw []string // which use different channels: raw output may arrive before the host has seen the cell's end
	for _, l := range append(first.Logs, e.Logs...) {
		text, _, _ := strings.Cut(l.Text, "\n")
		if l.Level == runtime.LogStdout {
			raw = append(raw, text)
		} else {
			console = append(console, string(l.Level)+" "+text)
		}
	}
	if diff := cmp.Diff([]string{"warn left over", "error Uncaught (in cell-1.js) Error: unseen", "error Uncaught (in cell-1.js) Error: thrown", "log own"}, console); diff != "" || !slices.Equal(raw, []string{"raw"}) {
		t.Errorf("(-want +got)\n%s\nby itself: %q", diff, raw)
	}

	// An error of an earlier cell is not reported by the running one.
	want(t, c, `setTimeout(() => { throw new Error('late') }, 50); 2`, `2`)
	e = cell(t, c, `await new Promise(r => setTimeout(r, 200)); 3`, runtime.EvaluateOptions{})
	if string(e.Value) != `3` || e.Error != nil || len(e.Logs) != 1 || !strings.HasPrefix(e.Logs[0].Text, "Uncaught (in cell-3.js) Error: late\n    at Timeout._onTimeout (cell-3.js:1:26)") {
		t.Errorf("%s %v %v", e.Value, e.Error, e.Logs)
	}
}

// Lines that are printed between two cells go to ContextOptions.OnLog, or else to the next
// cell, and are bounded.
func TestContextIdleLines(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	lines := make(chan runtime.Log, 1000)
	for name, onLog := range map[string]func(runtime.Log){"with the next cell": nil, "as they come": func(l runtime.Log) { lines <- l }} {
		c := newContext(t, rt, runtime.ContextOptions{OnLog: onLog})
		want(t, c, `setTimeout(() => { for (let i = 0; i < 1000; i++) console.log(i, 'x'.repeat(5000)); require('node:fs').mkdirSync('ready') }, 5); 1`, `1`)
		untilReady(t, rt)
		e := cell(t, c, `console.log('own')`, runtime.EvaluateOptions{MaxLogs: 150, MaxLogLength: 10})
		if err := rt.FS().Remove("/workspace/ready"); err != nil {
			t.Error(err)
		}
		if onLog == nil {
			if len(e.Logs) != 101 || !e.Truncated.Logs || e.Logs[100].Text != "own" || e.Logs[99].Text != "99 xxxxxxx…" {
				t.Errorf("%s: %d lines, %+v", name, len(e.Logs), e.Truncated)
			}
			continue
		}
		harness.WaitFor(t, "100 lines, independently of the cell", func() bool { return len(lines) >= 100 })
		if len(lines) != 100 || len(e.Logs) != 1 {
			t.Errorf("%s: %d lines, and %v", name, len(lines), e.Logs)
		}
		if l := <-lines; len(l.Text) != 1000+len("…") {
			t.Errorf("%s: %d bytes", name, len(l.Text))
		}
	}
}

// Lines arrive as they are printed, and none is lost.
func TestContextLogs(t *testing.T) {
	c := newContext(t, harness.Create(t, runtime.Options{}), runtime.ContextOptions{})
	var came []string
	for i := range 20 {
		came = nil
		e := cell(t, c, `console.log('a', [1]); console.info('b'); console.debug('c'); console.warn('d'); console.error('e'); process.stdout.write('f\ng'); process.stderr.write('h\n'); console.group(); 1`,
			runtime.EvaluateOptions{OnLog: func(l runtime.Log) { came = append(came, l.Text) }})
		var console, raw []string
		for _, l := range e.Logs {
			if l.Level == runtime.LogStdout || l.Level == runtime.LogStderr {
				raw = append(raw, string(l.Level)+" "+l.Text)
			} else {
				console = append(console, string(l.Level)+" "+strings.TrimSpace(l.Text))
			}
		}
		if diff := cmp.Diff([]string{"log a [ 1 ]", "info b", "debug c", "warn d", "error e"}, console); diff != "" {
			t.Errorf("%d: (-want +got)\n%s", i, diff)
		}
		if len(raw) != 3 || len(came) != 8 {
			t.Errorf("%d: written past console %q, all %q", i, raw, came)
		}
	}
	e := cell(t, c, `const { execSync } = require('node:child_process'); execSync('echo out; echo err >&2', { stdio: 'inherit' }); 1`, runtime.EvaluateOptions{})
	if len(e.Logs) != 2 {
		t.Errorf("a child's: %v", e.Logs)
	}
}

// A cell can return its value as Node's REPL prints it.
func TestContextText(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	c := newContext(t, rt, runtime.ContextOptions{})
	for _, tc := range []struct {
		code, want string
		form       runtime.ResultForm
	}{
		{`new Map([['a', { b: [1] }]])`, `"Map(1) { 'a' => { b: [ 1 ] } }"`, runtime.ResultText},
		{`undefined`, `"undefined"`, runtime.ResultText},
		{`1n`, `"1n"`, runtime.ResultText},
		{`[function named() {}]`, `"[ [Function: named] ]"`, runtime.ResultText},
		{`new Proxy({}, { ownKeys() { for (;;); } })`, `"Proxy [ {}, { ownKeys: [Function: ownKeys] } ]"`, runtime.ResultText},
		{`5`, `"\u001b[33m5\u001b[39m"`, runtime.ResultColors},
	} {
		e := cell(t, c, tc.code, runtime.EvaluateOptions{Form: tc.form})
		one := harness.Evaluate(t, rt, tc.code, runtime.EvaluateOptions{Form: tc.form})
		if string(e.Value) != tc.want || string(one.Value) != tc.want || e.Error != nil || one.Error != nil {
			t.Errorf("%s: %s %v, and by Evaluate %s %v; want %s", tc.code, e.Value, e.Error, one.Value, one.Error, tc.want)
		}
	}
	e := cell(t, c, `'ü'.repeat(5000)`, runtime.EvaluateOptions{Form: runtime.ResultText, MaxOutput: 1000})
	if e.Error != nil || len(e.Value) > 1000 || len(e.Value) < 400 || !strings.HasSuffix(string(e.Value), `…"`) {
		t.Errorf("%d bytes, %v", len(e.Value), e.Error)
	}
}

// Completion calls no code of the guest.
func TestContextComplete(t *testing.T) {
	c := newContext(t, harness.Create(t, runtime.Options{}), runtime.ContextOptions{})
	want(t, c, `
		const lexical = { one: { two: 2, twofold: 3 }, get trap() { globalThis.sprung = 1; return {} }, 'no name': 1 };
		var lexicon = 1; let text = 'x', list = [1, 2];
		const proxy = new Proxy({}, { ownKeys() { globalThis.sprung = 2; return [] }, getPrototypeOf() { globalThis.sprung = 3; return null } });
		class Base { method() {} }; const child = new (class extends Base { own = 1 });
		Object.defineProperty(globalThis, 'sly', { get() { globalThis.sprung = 4 } }); 1`, `1`)
	for line, tc := range map[string]struct {
		prefix string
		names  []string
	}{
		"lexic":                {"lexic", []string{"lexical", "lexicon"}},
		"1 + lexical.one.tw":   {"tw", []string{"two", "twofold"}},
		"f(lexical?.one . two": {"two", []string{"two", "twofold"}},
		"lexical.no":           {"no", nil},
		"lexical.trap.":        {"", nil},
		"proxy.":               {"", nil},
		"sly.a":                {"a", nil},
		"child.o":              {"o", []string{"own"}},
		"child.me":             {"me", []string{"method"}},
		"text.toLowerC":        {"toLowerC", []string{"toLowerCase"}},
		"list.findL":           {"findL", []string{"findLast", "findLastIndex"}},
		"process.vers":         {"vers", []string{"version", "versions"}},
		"process.versions.no":  {"no", []string{"node"}},
		"Atomics.waitA":        {"waitA", []string{"waitAsync"}},
		"nosuch.":              {"", nil},
		"f().lexic":            {"", nil},
		"'lexic":               {"", nil},
	} {
		prefix, names, err := c.Complete(t.Context(), line)
		if err != nil || prefix != tc.prefix || !cmp.Equal(names, tc.names, equateEmpty) {
			t.Errorf("%s: %q %q, %v; want %q %q", line, prefix, names, err, tc.prefix, tc.names)
		}
	}
	if _, names, err := c.Complete(t.Context(), ""); err != nil || len(names) < 100 {
		t.Errorf("nothing: %q, %v", names, err)
	}
	want(t, c, `typeof sprung`, `"undefined"`)
	want(t, c, `(() => { try { null.x } catch (e) { return e.stack.match(/cell-\d+/)[0] } })()`, `"cell-3"`) // completions do not count as cells
	c.Close()
	if _, _, err := c.Complete(t.Context(), "a"); !errors.Is(err, runtime.ErrContextEnded) {
		t.Errorf("after the end: %v", err)
	}
}

var equateEmpty = cmp.Comparer(func(a, b []string) bool { return strings.Join(a, ",") == strings.Join(b, ",") })
