package evaluate

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// frames defines a function for cells that writes protocol frames to the host.
const frames = `
	const { writeSync } = require('node:fs');
	const frame = (kind, ...parts) => {
		const body = Buffer.concat(parts.map(p => typeof p === 'number' ? Buffer.from([p >>> 24, p >>> 16, p >>> 8, p]) : Buffer.from(p)));
		const head = Buffer.from([0, 0, 0, 0, kind]);
		head.writeUInt32BE(body.length + 1);
		writeSync(3, Buffer.concat([head, body]));
	};
	1`

// A guest that violates the protocol loses its context, and harms no other.
func TestContextForgedFrames(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Bindings: bindings()})
	for name, code := range map[string]string{
		"the end of another cell":     `frame(5, 77); await new Promise(() => setInterval(() => {}))`,
		"the end of the next cell":    `frame(5, 3); await new Promise(() => setInterval(() => {}))`,
		"an end of no cell":           `frame(5, 'x'); await new Promise(() => setInterval(() => {}))`,
		"a value that is not JSON":    `frame(1, '{'); await new Promise(() => setInterval(() => {}))`,
		"a value that is too large":   `frame(1, '"' + 'x'.repeat(2 << 20) + '"'); await new Promise(() => setInterval(() => {}))`,
		"a line that is too long":     `frame(2, '\x02' + 'x'.repeat(1 << 20)); await new Promise(() => setInterval(() => {}))`,
		"a line without a level":      `frame(2, 'x'); await new Promise(() => setInterval(() => {}))`,
		"a failure that is no object": `frame(4, '[]'); await new Promise(() => setInterval(() => {}))`,
		"a kind of the host's":        `frame(17, 1, '{}'); await new Promise(() => setInterval(() => {}))`,
		"no frame":                    `writeSync(3, Buffer.alloc(100, 255)); await new Promise(() => setInterval(() => {}))`,
		"a function that is not":      `frame(3, 1, 999, '[]'); await new Promise(() => setInterval(() => {}))`,
		"its own end, and then more":  `frame(5, 2); frame(1, '5'); await new Promise(() => setInterval(() => {}))`,
	} {
		c := newContext(t, rt, runtime.ContextOptions{})
		want(t, c, frames, `1`)
		began := time.Now()
		e, err := c.Evaluate(t.Context(), code, runtime.EvaluateOptions{})
		if name != "its own end, and then more" && (err != nil || e.Error == nil || !strings.Contains(e.Error.Error(), "it violates the protocol")) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		ended(t, c, "it violates the protocol")
		if time.Since(began) > 25*time.Second { // less than the timeout of a cell
			t.Errorf("%s: it took %v", name, time.Since(began))
		}
	}
}

// The host accepts frames that concern only the guest itself, even if they are not true.
func TestContextClaims(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	c := newContext(t, rt, runtime.ContextOptions{})
	want(t, c, frames, `1`)
	e := cell(t, c, `frame(1, '1'); frame(4, JSON.stringify({ name: 'Odd', message: 'm', stack: 'at cell-99.js:1:1 at cell-1.js:99:99' })); frame(1, '2'); 3`, runtime.EvaluateOptions{})
	if string(e.Value) != `3` || e.Error == nil || e.Error.Error() != "Odd: m" {
		t.Errorf("%s %v", e.Value, e.Error)
	}
	if e := cell(t, c, `for (let i = 0; i < 100000; i++) frame(2, '\x03line ' + i); 1`, runtime.EvaluateOptions{MaxLogs: 5}); len(e.Logs) != 5 || !e.Truncated.Logs || string(e.Value) != `1` {
		t.Errorf("%s %v %d lines", e.Value, e.Error, len(e.Logs))
	}
	before := harness.RetainedHeap()
	want(t, c, `setTimeout(() => { for (let i = 0; i < 100000; i++) frame(2, '\x03' + 'x'.repeat(1000)) }); 1`, `1`)
	if grown := harness.Settle(4<<20, func() int64 { return harness.RetainedHeap() - before }); grown > 4<<20 {
		t.Errorf("lines between two cells cost the host %d bytes", grown)
	}
	want(t, c, `1`, `1`)
}

// A guest that corrupts dependencies of the context harms only itself.
func TestContextCorrupted(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Bindings: bindings()})
	for name, code := range harness.SomeByName(map[string]string{
		"globals":              `JSON.stringify = JSON.parse = Buffer.from = Buffer.concat = Object.defineProperty = Array.prototype.push = null; 1`,
		"promises":             `Promise.prototype.then = null; Promise.resolve = null; 1`,
		"no more variables":    `Object.preventExtensions(globalThis); 1`,
		"the debugger":         `require('node:inspector').Session.prototype.post = null; 1`,
		"signals":              `process.removeAllListeners('SIGINT'); 1`,
		"descriptor 5 is shut": `require('node:fs').closeSync(5); 1`,
		"descriptor 3 is shut": `require('node:fs').closeSync(3); 1`,
		"a busy timer":         `setTimeout(() => { for (;;); }, 1); 1`,
		"no reading":           `setImmediate(function again() { setImmediate(again); for (const end = Date.now() + 50; Date.now() < end;); }); 1`,
		"the names":            `Object.defineProperty(Object.prototype, 'complete', { value: 1 }); Object.prototype.form = 'x'; 1`,
	}) {
		c := newContext(t, rt, runtime.ContextOptions{})
		if _, err := c.Evaluate(t.Context(), code, runtime.EvaluateOptions{Timeout: time.Second}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		began := time.Now()
		for range 3 { // each ends in time, in some way
			e, err := c.Evaluate(t.Context(), `echo(5)`, runtime.EvaluateOptions{Timeout: 300 * time.Millisecond})
			if err == nil && e.Value != nil && !json.Valid(e.Value) {
				t.Errorf("%s: %s", name, e.Value)
			}
		}
		_, _, _ = c.Complete(t.Context(), "ech")
		if took := time.Since(began); took > 25*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
