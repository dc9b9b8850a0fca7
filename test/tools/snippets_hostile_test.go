package tools

import (
	"strings"
	"testing"
	"time"

	"gaol/runtime/snippets"
)

// frame defines a function that writes protocol frames to the host.
const frame = `
import { writeSync } from 'node:fs';
const frame = (kind, text) => {
	const body = Buffer.from(text);
	const head = Buffer.from([0, 0, 0, 0, kind]);
	head.writeUInt32BE(body.length + 1);
	writeSync(3, Buffer.concat([head, body]));
};
const leave = () => process.reallyExit(0);
`

// reports are forged reports, or none. Facts are the output's; empty: any.
var reports = map[string]struct{ source, facts string }{
	"its own report":        {`globalThis.__evaluated({ facts: '{"forged":1}', derived: '{}', errors: [] }); process.reallyExit(0)`, `{"forged":1}`},
	"facts that are a list": {frame + `frame(1, JSON.stringify({ facts: '[]', derived: '{}', errors: [] })); leave()`, `{}`},
	"facts without JSON":    {frame + `frame(1, JSON.stringify({ facts: '{', derived: '{}', errors: [] })); leave()`, `{}`},
	"two objects":           {frame + `frame(1, JSON.stringify({ facts: '{}{}', derived: '{}', errors: [] })); leave()`, `{}`},
	"more keys":             {frame + `frame(1, JSON.stringify({ facts: '{}', derived: '{}', errors: [], timedOut: true })); leave()`, `{}`},
	"other types":           {frame + `frame(1, JSON.stringify({ facts: 5, derived: null, errors: 'x' })); leave()`, `{}`},
	"large facts":           {frame + `frame(1, JSON.stringify({ facts: '{"x":"' + 'x'.repeat(2 << 20) + '"}', derived: '{}', errors: [] })); leave()`, `{}`},
	"a large report":        {frame + `frame(1, '"' + 'x'.repeat(5 << 20) + '"'); leave()`, `{}`},
	"deep facts":            {frame + `frame(1, JSON.stringify({ facts: '{"x":' + '['.repeat(400000) + ']'.repeat(400000) + '}', derived: '{}', errors: [] })); leave()`, `{}`},
	"many errors":           {frame + `frame(1, JSON.stringify({ facts: '{}', derived: '{}', errors: Array(100000).fill('e') })); leave()`, `{}`},
	"long errors":           {frame + `frame(1, JSON.stringify({ facts: '{}', derived: '{}', errors: ['e'.repeat(3 << 20)] })); leave()`, `{}`},
	"an unknown frame":      {frame + `frame(99, 'x'); leave()`, `{}`},
	"no frames":             {frame + `writeSync(3, Buffer.alloc(1 << 16, 255)); leave()`, `{}`},
	"a failure":             {frame + `frame(4, JSON.stringify({ name: 'TimeoutError', message: 'x'.repeat(100000), stack: 'at file:///workspace/src/main.mjs:1:1\n'.repeat(1000) })); leave()`, `{}`},
	"logs":                  {frame + `for (let i = 0; i < 2000; i++) frame(2, '\x05' + 'x'); leave()`, `{}`},
	"replaced globals": {`
		JSON.stringify = JSON.parse = Object.keys = Array.prototype.some = Array.prototype.push = () => { throw new Error('replaced') };
		Object.prototype.toJSON = () => 'polluted'; globalThis.Map = globalThis.Error = null; console.log = null;
		process.emit = () => {}; process.on = null;`, ``},
	"an endless report": {`Object.defineProperty(Object.prototype, 'facts', { get() { for (;;); } }); export const x = { toJSON() { for (;;); } };`, ``},
}

// A forged report only fools its author: the output keeps its form and its bounds.
func TestHostileReports(t *testing.T) {
	r := newRunner(t, snippets.Options{})
	for name, tc := range reports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := snippets.Input{Source: tc.source, Timeout: snippets.MaxTimeout}
			if name == "an endless report" {
				in.Timeout = 2 * time.Second
			}
			out := run(t, r, in)
			if tc.facts != "" && string(out.Facts) != tc.facts {
				t.Errorf("facts %.100s", out.Facts)
			}
			if out.TimedOut != (name == "an endless report") {
				t.Errorf("timed out %v", out.TimedOut)
			}
			for _, e := range out.Errors {
				if len(e) > 20_000 {
					t.Errorf("an error of %d bytes", len(e))
				}
			}
		})
	}
}

// Errors show neither the host's nor gaol's own paths.
func TestErrorsHavePaths(t *testing.T) {
	r := newRunner(t, snippets.Options{NodeModules: packages})
	for _, source := range []string{
		"throw new Error(new Error('x').stack)",
		"export const x = { get a() { throw new Error(new Error('y').stack) } }",
		"import greeter from 'legacy-greeter'; greeter.greet(Symbol('x'))",
		"await import('./none.mjs')",
		"console.log(new Error('x').stack); globalThis.__evaluated(1n)",
		"process.on('exit', () => { throw new Error('at exit') })",
		"JSON.parse('{')",
	} {
		out := run(t, r, snippets.Input{Source: source})
		for _, text := range append(out.Errors, out.Logs...) {
			for _, bad := range []string{"snippet.mjs", "main.mjs", "/usr/libexec", ".adapter.mjs", "/packages/", "/root", "/var/lib"} {
				if strings.Contains(text, bad) {
					t.Errorf("%s: %s", source, text)
				}
			}
		}
	}
}
