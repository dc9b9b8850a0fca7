package run

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"gaol/runtime"
	"gaol/test/harness"
)

// raw begins programs that bypass gaol's own code: frames, and functions to write and read
// them. Function 0 is hang, 1 is large, 2 is note.
const raw = `
import fs from 'node:fs';
const u32 = n => { const b = Buffer.alloc(4); b.writeUInt32BE(n); return b };
const frame = (kind, ...parts) => { const body = Buffer.concat(parts.map(p => Buffer.from(p))); return Buffer.concat([u32(body.length + 1), Buffer.from([kind]), body]) };
const call = (id, f, json) => frame(3, u32(id), u32(f), json);
const value = json => frame(1, json);
const send = (...all) => { for (const b of all) for (let at = 0; at < b.length; ) at += fs.writeSync(3, b, at) };
let got = Buffer.alloc(0);
const receive = () => {
	for (;;) {
		const end = got.length < 4 ? Infinity : 4 + got.readUInt32BE(0);
		if (got.length >= end) {
			const answer = { id: got.readUInt32BE(5), failed: got[9] === 1, json: got.toString('utf8', 10, end) };
			got = got.subarray(end);
			return answer;
		}
		const b = Buffer.alloc(1 << 16), n = fs.readSync(5, b);
		if (n === 0) return null;
		got = Buffer.concat([got, b.subarray(0, n)]);
	}
};
`

// errNoUser is what host functions return that fail.
var errNoUser = &runtime.CallError{Code: "ENOENT", Message: "there is no such user"}

// checkingHost is a host whose functions check their arguments.
type checkingHost struct {
	notes, hanging atomic.Int64
	size           int          // how many bytes large returns
	over           sync.Map     // names of runs that have returned
	onNote         func(string) // nil, or called with the name of each run that calls
	mu             sync.Mutex
	wrong          []string
}

// maxNote is the limit of arguments in these tests.
const maxNote = 256 << 10

// runtime creates a runtime whose programs have the functions.
func (w *checkingHost) runtime(t testing.TB, o runtime.Options) *runtime.NodeRuntime {
	t.Helper()
	o.Bindings = map[string]any{"hang": w.hang, "large": w.large, "note": w.note}
	o.Calls.Arguments = maxNote
	return harness.Create(t, o)
}

// note returns its arguments. They begin with the name of a run if the test checks that the
// run has not returned yet.
func (w *checkingHost) note(_ context.Context, args json.RawMessage) (any, error) {
	w.notes.Add(1)
	if len(args) > maxNote || !utf8.Valid(args) || !json.Valid(args) || args[0] != '[' {
		w.wrongly("the arguments %.100q", args)
	}
	var list []any
	if json.Unmarshal(args, &list) == nil && len(list) > 0 {
		if name, isText := list[0].(string); isText {
			if _, over := w.over.Load(name); over {
				w.wrongly("called by run %s, which is over", name)
			}
			if w.onNote != nil {
				w.onNote(name)
			}
		}
	}
	return args, nil
}

func (w *checkingHost) hang(ctx context.Context, _ json.RawMessage) (any, error) {
	w.hanging.Add(1)
	defer w.hanging.Add(-1)
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (w *checkingHost) large(context.Context, json.RawMessage) (any, error) {
	return strings.Repeat("x", w.size), nil
}

func (w *checkingHost) wrongly(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// check reports the findings of the functions, and that none is still running.
func (w *checkingHost) check(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); w.hanging.Load() > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if n := w.hanging.Load(); n > 0 {
		t.Errorf("%d functions go on", n)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.wrong {
		t.Error(text)
	}
	w.wrong = nil
}

// checkHonestRun checks that an ordinary program works, before and after hostile ones.
func checkHonestRun(t testing.TB, rt *runtime.NodeRuntime) {
	t.Helper()
	res := harness.Run(t, rt, `
		const now = Array.from({ length: 20 }, (_, i) => note(i)[0]);
		const later = await Promise.all(Array.from({ length: 300 }, (_, i) => note.async(i).then(([n]) => n)));
		__return([now.every((n, i) => n === i), later.every((n, i) => n === i)])`, runtime.RunOptions{})
	if string(res.Value) != "[true,true]" || res.ExitCode != 0 || res.Cause != "" {
		t.Errorf("an checkHonestRun run: value %s, exit code %d, cause %q, %s", res.Value, res.ExitCode, res.Cause, res.Stderr)
	}
}

// startHonestRuns repeats checkHonestRun runs until stop is called.
func startHonestRuns(t testing.TB, rt *runtime.NodeRuntime) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			default:
			}
			res, err := rt.Run(t.Context(), `for (let i = 0; i < 200; i++) { if (note(i)[0] !== i) throw i; await note.async(i) } __return(1)`, runtime.RunOptions{})
			if err != nil || string(res.Value) != "1" {
				t.Errorf("an checkHonestRun run startHonestRuns it: %+v, %v", res, err)
				return
			}
		}
	}()
	return func() { close(over); <-ended }
}

// badFrames are expressions for frames that no code of gaol writes. Each ends the channel,
// and nothing else.
var badFrames = map[string]string{
	"a call of an unknown function":       `call(9, 3, '[]')`,
	"the last function that can be":       `call(9, 0xffffffff, '[]')`,
	"a number asked for twice":            `call(7, 0, '[]'), call(7, 2, '[]')`,
	"a number twice":                      `call(7, 0, '[]'), call(7, 2, '[]')`,
	"4 GiB":                               `u32(0xffffffff), Buffer.from([3])`,
	"4 GiB of a value":                    `u32(0xffffffff), Buffer.from([1]), Buffer.alloc(1 << 20)`,
	"nothing":                             `u32(0), u32(0)`,
	"an answer":                           `frame(16, u32(1), [0], '1')`,
	"a cell":                              `frame(17, u32(1), '1')`,
	"a log":                               `frame(2, [2], 'x')`,
	"a failure with more":                 `frame(4, '{"name":"x","extra":1}')`,
	"a reason for no value":               `frame(7, 'x')`,
	"a done":                              `frame(5, u32(1))`,
	"kind 0":                              `frame(0, 'x')`,
	"kind 255":                            `frame(255, 'x')`,
	"a value that is not JSON":            `value('{')`,
	"a value that is no UTF-8":            `value(Buffer.from([34, 0xff, 34]))`,
	"a value over the limit":              `value('"' + 'x'.repeat(1 << 20) + '"')`,
	"a value 10,001 deep":                 `value('['.repeat(10001) + ']'.repeat(10001))`,
	"a short call":                        `frame(3, '1234567')`,
	"no arguments":                        `call(9, 2, '')`,
	"arguments that are an object":        `call(9, 2, '{}')`,
	"arguments that are null":             `call(9, 2, 'null')`,
	"arguments without an end":            `call(9, 2, '[1')`,
	"two arrays":                          `call(9, 2, '[][]')`,
	"NaN":                                 `call(9, 2, '[NaN]')`,
	"a comma too many":                    `call(9, 2, '[1,]')`,
	"a control character":                 `call(9, 2, '["\n"]')`,
	"a byte order mark":                   `call(9, 2, '\ufeff[]')`,
	"arguments that are no UTF-8":         `call(9, 2, Buffer.from([91, 34, 0xff, 34, 93]))`,
	"an overlong form":                    `call(9, 2, Buffer.from([91, 34, 0xc0, 0x80, 34, 93]))`,
	"a surrogate in UTF-8":                `call(9, 2, Buffer.from([91, 34, 0xed, 0xa0, 0x80, 34, 93]))`,
	"arguments 10,001 deep":               `call(9, 2, '['.repeat(10001) + ']'.repeat(10001))`,
	"arguments one byte over the limit":   `call(9, 2, '[' + ' '.repeat(256 * 1024 - 1) + ']')`,
	"a good call behind a bad one":        `call(9, 3, '[]'), call(10, 2, '["bad"]')`,
	"a good call behind one that is cut":  `call(9, 2, '[]').subarray(0, 10), call(10, 2, '["bad"]')`,
	"a megabyte of 0xff, and then a call": `Buffer.alloc(1 << 20, 0xff), call(10, 2, '["bad"]')`,
}

// A frame that no code of gaol writes ends the channel. Earlier calls are kept, no function
// is called afterwards, and the program gets an error.
func TestControlBadFrames(t *testing.T) {
	w := &checkingHost{}
	rt := w.runtime(t, runtime.Options{Limits: runtime.Limits{Value: 1 << 20}})
	stop := startHonestRuns(t, rt)
	defer stop()
	w.over.Store("bad", true)
	for name, frames := range harness.SomeByName(badFrames) {
		res := harness.Run(t, rt, raw+`
			__return(note(1)[0]);
			try { send(`+frames+`) } catch (err) { if (err.code !== 'EPIPE') throw err }
			for (let i = 0; i < 2; i++) try { console.log(note('bad')) } catch (err) { console.log(err.code) }
			await note.async('bad').catch(err => console.log(err.code));
			try { __return(2) } catch (err) { console.log(err.code) }`, runtime.RunOptions{Timeout: time.Minute})
		const want = "ERR_HOST_CLOSED\nERR_HOST_CLOSED\nERR_HOST_CLOSED\nEPIPE\n"
		late := harness.HasAgent() && string(res.Stdout)+"EPIPE\n" == want // the agent closes its end of the pipe later
		if string(res.Value) != "1" || string(res.Stdout) != want && !late || res.ExitCode != 0 {
			t.Errorf("%s: value %s, exit code %d, cause %q, stdout %q, %s", name, res.Value, res.ExitCode, res.Cause, res.Stdout, res.Stderr)
		}
		w.check(t)
	}
	checkHonestRun(t, rt)
}

// Unusual frames within the protocol are answered call by call.
func TestControlOddFrames(t *testing.T) {
	w := &checkingHost{}
	rt := w.runtime(t, runtime.Options{})
	for _, tc := range []struct{ name, args, want string }{
		{"twice the same name", `'[{"a":1,"a":2}]'`, `ERR_ARGUMENTS`},
		{"twice the same name, in escapes", `'[{"a":1,"\\u0061":2}]'`, `ERR_ARGUMENTS`},
		{"twice, deep inside", `'[[[{"b":{"a":1,"c":[],"a":2}}]]]'`, `ERR_ARGUMENTS`},
		{"surrogates that Go would merge", `'[{"\\ud800":1,"\\ud801":2}]'`, `ERR_ARGUMENTS`},
		{"__proto__", `'[{"__proto__":{"x":1},"constructor":{"prototype":1}}]'`, `[{"__proto__":{"x":1},"constructor":{"prototype":1}}]`},
		{"half a character", `'["\\ud800"]'`, `["\ud800"]`},
		{"U+0000", `'["\\u0000"]'`, `["\u0000"]`},
		{"a name of ours", `'[{"\\u0000bytes":"AA=="}]'`, `[{"\u0000bytes":"AA=="}]`},
		{"a large number", `'[1e400,-0,1e30]'`, `[1e400,-0,1e30]`},
		{"an integer that a number cannot hold", `'[1,123456789012345678901234567890]'`, `ERR_RESULT`},
		{"10,000 deep", `'['.repeat(10000) + ']'.repeat(10000)`, strings.Repeat("[", 10000)},
		{"as long as allowed", `'["' + 'x'.repeat(256 * 1024 - 4) + '"]'`, `["xxx`},
		{"blanks", `' [ ] '.trim() + ' '.repeat(1000)`, `[`},
	} {
		res := harness.Run(t, rt, raw+`send(call(5, 2, `+tc.args+`)); const { id, json } = receive(); console.log(id, json); __return(note(1))`, runtime.RunOptions{})
		if !strings.HasPrefix(string(res.Stdout), "5 ") || !strings.Contains(string(res.Stdout), tc.want) || string(res.Value) != "[1]" {
			t.Errorf("%s: %.200s, exit code %d, %s", tc.name, res.Stdout, res.ExitCode, res.Stderr)
		}
		w.check(t)
	}
	checkHonestRun(t, rt)
}
