package evaluate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
	"gaol/test/harness"
)

// A context survives what libraries and their users do.
func TestContextSurvivesLibraries(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Bindings: bindings()})
	for name, code := range map[string]string{
		"fake timers":              `require('node:test').mock.timers.enable(); 0`,
		"another setImmediate":     `import { setImmediate, setTimeout } from 'node:timers/promises'; 0`,
		"a global toJSON":          `Object.prototype.toJSON = () => 'x'; 0`,
		"another push":             `Array.prototype.push = () => { throw 1 }; 0`,
		"another then":             `Promise.prototype.then = () => { throw 1 }; 0`,
		"a variable String":        `const String = 1; 0`,
		"a variable Object":        `let Object = null; 0`,
		"a class Error":            `class Error { constructor() { throw 1 } } 0`,
		"variables of other names": `const JSON = 1, Array = 2, Promise = 3, Map = 4, RegExp = 5, Buffer = 6, Reflect = 7, Number = 8; 0`,
		"another listener":         `process.listenerCount = () => { throw 1 }; 0`,
	} {
		t.Run(name, func(t *testing.T) {
			c := newContext(t, rt, runtime.ContextOptions{})
			cell(t, c, code, runtime.EvaluateOptions{})
			e := cell(t, c, `console.log('line'); 42`, runtime.EvaluateOptions{})
			if string(e.Value) != `42` || e.Error != nil || len(e.Logs) != 1 {
				t.Errorf("%s, %v, %v", e.Value, e.Error, e.Logs)
			}
			want(t, c, `api.users.get(3).name`, `"user 3"`)
			if err := wantError(t, c, "1;\n(null).x", "TypeError: Cannot read properties of null"); !strings.Contains(err.Stack, "cell-4.js:2:8") {
				t.Error(err.Stack)
			}
			want(t, c, `(await api.users.get.async(4)).name`, `"user 4"`)
			if e, err := rt.Evaluate(t.Context(), code+";\nconsole.log('line'); (null).x", runtime.EvaluateOptions{}); err != nil || e.Error == nil || e.Error.Name != "TypeError" || len(e.Logs) != 1 {
				t.Errorf("evaluate: %+v, %v", e, err)
			}
		})
	}
}

// A cell with a listener of SIGINT can be interrupted, and the listener hears the process's own signal.
func TestContextSignalListener(t *testing.T) {
	c := newContext(t, harness.Create(t, runtime.Options{}), runtime.ContextOptions{})
	want(t, c, `globalThis.heard = 0; process.on('SIGINT', () => heard++).once('SIGINT', () => heard++); process.listenerCount('SIGINT')`, `2`)
	e := cell(t, c, `for (;;);`, runtime.EvaluateOptions{Timeout: 100 * time.Millisecond})
	if e.Error == nil || e.Error.Name != "TimeoutError" || e.Cause != "" {
		t.Fatalf("%v, cause %q", e.Error, e.Cause)
	}
	want(t, c, `process.kill(process.pid, 'SIGINT'); await new Promise(setImmediate); await new Promise(setImmediate); heard`, `2`)
	want(t, c, `process.removeAllListeners('SIGINT'); 3`, `3`)
	e = cell(t, c, `for (;;);`, runtime.EvaluateOptions{Timeout: 100 * time.Millisecond})
	if e.Error == nil || e.Error.Name != "TimeoutError" || e.Cause != "" {
		t.Fatalf("%v, cause %q", e.Error, e.Cause)
	}
	want(t, c, `4`, `4`)
}

// A late error of an earlier cell does not fail the next one, whatever its stack names. It is logged.
func TestContextLateErrors(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for name, code := range map[string]string{
		"a rejected read":       `require('fs').promises.readFile('/nope')`,
		"a read":                `require('fs').readFile('/nope', (err) => { throw err })`,
		"a program":             `require('child_process').spawn('/nope')`,
		"a stream":              `require('fs').createReadStream('/nope')`,
		"text":                  `setTimeout(() => Promise.reject('text'))`,
		"an error of a library": `setTimeout(() => new (require('events'))().emit('error', new Error('late')))`,
		"a microtask":           `setTimeout(() => queueMicrotask(() => { throw 1 }))`,
		"an async function":     `(async () => { await new Promise(setImmediate); throw new Error('late') })()`,
	} {
		t.Run(name, func(t *testing.T) {
			c := newContext(t, rt, runtime.ContextOptions{})
			begin := fmt.Sprintf("process.once('uncaughtExceptionMonitor', () => setImmediate(() => globalThis.seen())); globalThis.go = () => { %s }; 0", code)
			cell(t, c, begin, runtime.EvaluateOptions{})
			cell(t, c, "globalThis.failing = new Promise((done) => (globalThis.begin = done)).then(go); 0", runtime.EvaluateOptions{})
			// the error occurs while this cell waits for it, and belongs to the one before
			e := cell(t, c, "const seen = new Promise((done) => (globalThis.seen = done)); begin(); await seen; 'innocent'", runtime.EvaluateOptions{})
			if string(e.Value) != `"innocent"` || e.Error != nil {
				t.Fatalf("%s, %v, %v", e.Value, e.Error, e.Logs)
			}
			if len(e.Logs) != 1 || !strings.HasPrefix(e.Logs[0].Text, "Uncaught (in cell-2.js)") {
				t.Errorf("%v", e.Logs)
			}
			// a cell's own error is its own
			if e := cell(t, c, "const own = new Promise(() => {}); go(); await own", runtime.EvaluateOptions{}); e.Error == nil || e.Error.Name == "UnsettledError" {
				t.Errorf("its own: %v", e.Error)
			}
		})
	}
}

// console and the standard streams have one order, as in Node.
func TestOutputOrder(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	c := newContext(t, rt, runtime.ContextOptions{})
	const code = `process.stdout.write('Result: '); console.log(42); process.stdout.write('tail\n'); console.info('i');
		process.stderr.write('e'); console.error('rr'); process.stdout.write('é\nb'); process.stderr.write('c\n'); process.stdout.write('end'); 1`
	lines := []string{"log Result: 42", "stdout tail", "info i", "error err", "stdout é", "stdout b", "stderr c", "stdout end"}
	for range 20 {
		for door, evaluate := range map[string]func() (*runtime.Evaluation, error){
			"cell": func() (*runtime.Evaluation, error) {
				return c.Evaluate(t.Context(), code, runtime.EvaluateOptions{})
			},
			"evaluate": func() (*runtime.Evaluation, error) { return rt.Evaluate(t.Context(), code, runtime.EvaluateOptions{}) },
		} {
			e, err := evaluate()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range e.Logs {
				got = append(got, string(l.Level)+" "+l.Text)
			}
			if diff := cmp.Diff(lines, got); diff != "" {
				t.Fatalf("%s: %s", door, diff)
			}
		}
	}
}

// Streams that the program passes on still work, and large output is not lost.
func TestOutputStreams(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	e, err := rt.Evaluate(t.Context(), `const { Readable } = require('stream'); const { pipeline } = require('stream/promises');
		await pipeline(Readable.from(Array.from({ length: 2000 }, (_, i) => 'x'.repeat(500) + i + '\n')), process.stdout, { end: false });
		process.stdout.write(Buffer.from([0xc3])); process.stdout.write(Buffer.from([0xa9, 10])); process.stdout.write('6869', 'hex');
		process.stdout.writableNeedDrain`, runtime.EvaluateOptions{MaxLogs: 3000})
	if err != nil || e.Error != nil || len(e.Logs) != 2002 {
		t.Fatalf("%d lines, %v, %v", len(e.Logs), e.Error, err)
	}
	if last := e.Logs[1999].Text; !strings.HasSuffix(last, "x1999") || e.Logs[2000].Text != "é" || e.Logs[2001].Text != "hi" {
		t.Errorf("%q, %v", last, e.Logs[2000:])
	}
}
