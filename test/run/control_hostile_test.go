package run

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// tricks are changes that JavaScript lets a program make to the objects that all code
// shares. want is the result of calls afterwards, empty if they may fail or hang.
var tricks = []struct{ name, code, want string }{
	{"JSON.stringify", `JSON.stringify = () => '{"x":'; JSON.parse = () => 'forged'`, "fine"},
	{"Buffer", `for (const o of [Buffer, Buffer.prototype, Uint8Array.prototype, Object.getPrototypeOf(Uint8Array.prototype)]) for (const name of Reflect.ownKeys(o)) try { if (typeof o[name] === 'function' && name !== 'constructor') o[name] = () => 7 } catch {}`, ""},
	{"Buffer's writing and reading", `for (const name of ['write', 'toString', 'copy', 'subarray', 'slice', 'utf8Write', 'readUInt32BE', 'writeUInt32BE']) Buffer.prototype[name] = () => 7`, ""},
	{"Buffer itself", `globalThis.Buffer = Buffer.from = Buffer.alloc = Buffer.allocUnsafe = Buffer.concat = Buffer.byteLength = null`, "fine"},
	{"globals", `for (const name of ['JSON', 'Promise', 'Map', 'Error', 'TypeError', 'RangeError', 'Object', 'Array', 'Reflect', 'Atomics', 'ArrayBuffer', 'String', 'Function']) globalThis[name] = undefined`, ""},
	{"what errors are made of", `globalThis.Error = globalThis.TypeError = Error.captureStackTrace = Object.assign = Object.defineProperty = null`, "fine"},
	{"Map", `for (const name of ['get', 'set', 'has', 'delete', 'values']) Map.prototype[name] = () => undefined; Object.defineProperty(Map.prototype, 'size', { get: () => 0 })`, ""},
	{"Map, which throws", `Map.prototype.get = Map.prototype.set = () => { throw new Error('spoilt') }`, ""},
	{"Array", `for (const name of ['push', 'shift', 'every', 'map', 'forEach', 'slice']) Array.prototype[name] = () => { throw new Error('spoilt') }; Array.prototype[Symbol.iterator] = () => { throw new Error('spoilt') }`, ""},
	{"Function", `Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 7; Reflect.apply = () => 7`, ""},
	{"String", `String.prototype.includes = () => true; String.prototype.charCodeAt = () => 0; String.prototype.toString = () => 'x'`, "fine"},
	{"process", `process.nextTick = process.binding = process.emit = () => {}; Atomics.wait = () => {}`, "fine"},
	{"Promise", `Promise.prototype.then = Promise.prototype.catch = function () { return 'spoilt' }; Promise.resolve = Promise.all = () => 7`, ""},
	{"Symbol.species", `for (const C of [Promise, Array, Map, ArrayBuffer]) Object.defineProperty(C, Symbol.species, { value: function () { throw new Error('spoilt') } })`, ""},
	{"Array.prototype.toJSON", `Array.prototype.toJSON = () => ({ '0': 1 })`, "Error"}, // arrays within arguments are the program's
	{"Object.prototype.toJSON", `Object.prototype.toJSON = () => 1`, "TypeError"},
	{"a toJSON that is undefined", `Object.prototype.toJSON = () => undefined`, "TypeError"},
	{"a toJSON that is many", `Array.prototype.toJSON = function () { return [...this, 1, 2, 3] }`, "fine"},
	{"setters of Object.prototype", `for (const name of ['value', 'error', 'code', 'kind', 'call', 'failed', 'json', 'resolve', 'reject', 'next', 'get', 'set', 'writable', '0', 'length']) Object.defineProperty(Object.prototype, name, { set() { throw new Error('spoilt') }, get: () => undefined, configurable: true })`, ""},
	{"an error of Object.prototype's", `Object.prototype.error = 'forged'; Object.prototype.value = 'forged'; Object.prototype.code = 'forged'`, ""},
	{"then of Object.prototype", `Object.prototype.then = function (resolve) { resolve('forged') }`, ""},
	{"a getter that calls", `let deep = 0; Object.defineProperty(Object.prototype, 'then', { get() { if (deep++ < 50) note(deep); return undefined }, configurable: true })`, "fine"},
	{"a getter that calls asynchronously", `let deep = 0; Object.defineProperty(Object.prototype, 'then', { get() { if (deep++ < 50) note.async(deep); return undefined }, configurable: true })`, "fine"},
	{"a getter that throws", `Object.defineProperty(Object.prototype, 'then', { get() { throw new Error('spoilt') }, configurable: true })`, ""},
	{"a getter of codes", `Object.defineProperty(Error.prototype, 'code', { set() { throw new Error('spoilt') }, get: () => 'forged' }); Error.prepareStackTrace = () => { throw new Error('spoilt') }`, "fine"},
	{"no stacks", `Error.stackTraceLimit = 0; Object.freeze(Error); Object.freeze(Object.prototype); Object.freeze(Array.prototype)`, "fine"},
	{"frozen globals", `for (const name of Object.getOwnPropertyNames(globalThis)) { const v = globalThis[name]; if (typeof v === 'function' && v !== note && v !== fail) { Object.freeze(v); Object.freeze(v.prototype) } }`, "fine"},
	{"functions of its own", `for (const f of [() => (note.async = 7), () => (note.name = 7), () => Object.defineProperty(note, 'async', { value: 7 }), () => (globalThis.callBinding = 7)]) try { f() } catch {}`, "fine"},
	{"the socket", `const { Socket } = await import('node:net'); Socket.prototype.ref = Socket.prototype.unref = Socket.prototype.on = () => { throw new Error('spoilt') }`, ""},
	{"all handles", `await note.async(0); for (const h of process._getActiveHandles()) h.destroy?.()`, ""},
	{"fs", `const fs = (await import('node:fs')).default; fs.readSync = fs.writeSync = () => { throw new Error('spoilt') }; (await import('node:module')).syncBuiltinESMExports()`, "fine"},
}

const tried = `
	let said = 'fine';
	try {
		for (let i = 0; i < 20; i++) if (note(i, 'a', [1])[0] !== i) throw new Error('another answer');
		for (let i = 0; i < 20; i++) if ((await note.async(i, { b: [i] }))[1].b[0] !== i) throw new Error('another answer');
		try { fail(); said = 'no error' } catch (err) { if (err.code !== 'ENOENT') said = 'another error' }
	} catch (err) { said = err.name }
	say(said)`

// A program that modifies built-in objects harms at most its own calls. The host receives
// only valid frames, and the run ends.
func TestControlModifiedBuiltins(t *testing.T) {
	w := &checkingHost{}
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{CPUs: 2}, Bindings: map[string]any{
		"note": w.note,
		"fail": func(context.Context, json.RawMessage) (any, error) { return nil, errNoUser },
	}})
	checkHonestRun(t, rt)
	check := unleaked(t)
	stop := startHonestRuns(t, rt)
	for _, tc := range harness.Some(tricks) {
		code := `import { writeSync } from 'node:fs'; const say = (write => text => write(1, text))(writeSync);` + tc.code + ";" + tried
		limit := 2 * time.Second // it may not end
		if tc.want != "" {
			limit = time.Minute
		}
		res := harness.Run(t, rt, code, runtime.RunOptions{Timeout: limit})
		if tc.want != "" && (string(res.Stdout) != tc.want || res.ExitCode != 0) {
			t.Errorf("%s: %s, exit code %d, cause %q, %s; want %s", tc.name, res.Stdout, res.ExitCode, res.Cause, res.Stderr, tc.want)
		}
		t.Logf("%s: %s, exit code %d, cause %q", tc.name, res.Stdout, res.ExitCode, res.Cause)
		w.check(t)
	}
	stop()
	checkHonestRun(t, rt)
	check()
}

// Arguments are JavaScript objects, which can run code while they are serialized. That
// happens before the call begins.
func TestControlArguments(t *testing.T) {
	w := &checkingHost{}
	rt := w.runtime(t, runtime.Options{})
	for _, tc := range []struct{ name, args, want string }{
		{"a call in toJSON", `{ toJSON: () => note(5) }`, `[[5]]`},
		{"calls in a getter", `{ get a() { return note(5)[0] }, get b() { note.async(6); return 7 } }`, `[{"a":5,"b":7}]`},
		{"a getter that changes", `(n => ({ get a() { return n++ } }))(1)`, `[{"a":1}]`},
		{"a Proxy", `new Proxy({ a: 1 }, { get: (o, k) => k === 'toJSON' ? undefined : 9 })`, `[{"a":9}]`},
		{"a Proxy of an array", `new Proxy([1, 2], { get: (o, k) => k === 'length' ? 4 : o[k] })`, `[[1,2,null,null]]`},
		{"a Proxy that throws", `new Proxy({}, { ownKeys() { throw new Error('mine') } })`, `mine`},
		{"one that is revoked", `(r => (r.revoke(), r.proxy))(Proxy.revocable({}, {}))`, `revoked`},
		{"one that is as long as it can be", `new Proxy([], { get: (o, k) => k === 'length' ? 2 ** 32 : undefined })`, ``},
		{"a circle", `(o => (o.o = o))({})`, `argument 1.o: it is argument 1 again`},
		{"a depth", `(() => { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a })()`, `call stack`},
		{"functions and symbols", `[() => 1, Symbol('x')], undefined, NaN, -0`, `[[null,null],null,null,0]`},
		{"a function", `() => 1`, `argument 1: a function cannot be encoded as JSON`},
		{"a RegExp, an Error, a Map", `/x/, new Error('x'), new Map([[1, 2]])`, `["/x/",{"name":"Error","message":"x"},[[1,2]]]`},
		{"boxes", `new String('x'), new Number(1), new Boolean(false)`, `["x",1,false]`},
		{"__proto__", `JSON.parse('{"__proto__":{"a":1}}'), { __proto__: { b: 1 } }`, `[{"__proto__":{"a":1}},{}]`},
		{"names of ours", `{ '\0bytes': 'AAA=' }`, `[{"0":0,"1":0}]`},
		{"a view of shared memory", `new Uint8Array(new SharedArrayBuffer(3))`, `["AAAA"]`},
		{"a view of nothing", `(() => { const b = new ArrayBuffer(8), v = new Uint8Array(b); structuredClone(b, { transfer: [b] }); return v })()`, `detached`},
		{"bytes that call", `new (class extends Uint8Array { get buffer() { return note(1) } })(3)`, ``},
		{"halves of characters", `'\ud800', { '\udc00': 1 }`, `["\ud800",{"\udc00":1}]`},
		{"surrogates that Go would merge", `{ '\ud800': 1, '\ud801': 2 }`, `two fields of one name`},
		{"U+2028", `'\u2028'`, "[\"\u2028\"]"},
		{"an array with a toJSON", `Object.assign([1], { toJSON: () => 2 })`, `[2]`},
	} {
		limit := time.Minute
		if tc.want == "" {
			limit = 5 * time.Second
		}
		for _, call := range []string{"note(" + tc.args + ")", "await note.async(" + tc.args + ")"} {
			res := harness.Run(t, rt, `let said; try { said = JSON.stringify(`+call+`) } catch (err) { said = err.message } console.log(said); __return(note(8))`, runtime.RunOptions{Timeout: limit})
			if tc.want == "" && res.Cause != "" {
				continue // it may not end
			}
			if !strings.Contains(string(res.Stdout), tc.want) || string(res.Value) != "[8]" {
				t.Errorf("%s: %s: %.200s, value %s, exit code %d, cause %q, %s; want %s", tc.name, call, res.Stdout, res.Value, res.ExitCode, res.Cause, res.Stderr, tc.want)
			}
			w.check(t)
		}
	}
	checkHonestRun(t, rt)
}

// Results are data, whatever JavaScript could take them for.
func TestControlResults(t *testing.T) {
	results := map[string]any{
		"then":  map[string]any{"then": "x", "catch": 1},
		"proto": json.RawMessage(`{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}`),
		"twice": json.RawMessage(`{"a":1,"a":2}`),
		"half":  json.RawMessage(`"\ud800"`),
		"bytes": map[string]any{"\x00bytes": "AAA="},
		"odd":   "\xff\x00\u2028</script>",
		"error": map[string]any{"message": "no error", "code": "E"},
		"deep":  json.RawMessage(strings.Repeat("[", 5000) + strings.Repeat("]", 5000)),
	}
	given := map[string]any{}
	for name, v := range results {
		given[name] = func(context.Context, json.RawMessage) (any, error) { return v, nil }
	}
	rt := harness.Create(t, runtime.Options{Bindings: map[string]any{"get": given}})
	for name, want := range map[string]string{
		"then": `r.then === 'x'`, "proto": `Object.hasOwn(r, '__proto__') && r.polluted === undefined && ({}).polluted === undefined`,
		"twice": `r.a === 2`, "half": `r.length === 1`, "bytes": `r instanceof Uint8Array && r.length === 2`,
		"odd": `r === '\ufffd\0\u2028</script>'`, "error": `r.message === 'no error' && !(r instanceof Error)`, "deep": `Array.isArray(r)`,
	} {
		for _, call := range []string{"get." + name + "()", "await get." + name + ".async()"} {
			res := harness.Run(t, rt, `const r = `+call+`; __return(`+want+`)`, runtime.RunOptions{})
			if string(res.Value) != "true" {
				t.Errorf("%s: %s, exit code %d, %s", call, res.Value, res.ExitCode, res.Stderr)
			}
		}
	}
}
