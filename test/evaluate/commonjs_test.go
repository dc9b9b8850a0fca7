package evaluate

import (
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// commonJSSnippets are what models write for CommonJS, with their values as snippets and as
// cells.
var commonJSSnippets = []struct{ name, code, want string }{
	{"require", `const os = require('os'); os.hostname()`, `"secure-exec"`},
	{"with await", "const { sep } = require('path');\nconst a = await Promise.resolve(1);\n[sep, a]", `["/",1]`},
	{"with import", "import { sep } from 'node:path';\nsep + require('os').EOL", `"/\n"`},
	{"with return", `const { sep } = require('path'); if (sep) return sep`, `"/"`},
	{"module.exports", `module.exports = { a: 1 }`, `{"a":1}`},
	{"before what has no value", "module.exports = { a: 1 };\nconsole.log('done')", `{"a":1}`},
	{"before a declaration", "module.exports = { a: f() };\nfunction f() { return 2 }", `{"a":2}`},
	{"exports", "exports.a = 1;\nexports.b = require('path').sep", `{"a":1,"b":"/"}`},
	{"a function", `module.exports = async () => require('path').sep`, `"/"`},
	{"a promise", "module.exports = Promise.resolve(3);\nconsole.log('later')", `3`},
	{"before a value", `module.exports = { a: 1 }; 2`, `2`},
	{"before null", `module.exports = { a: 1 }; null`, `null`},
	{"nothing exported", `module.exports; undefined`, ``},
	{"require.main", "function main() { return 'ran' }\nlet ran;\nif (require.main === module) ran = main();\nran", `"ran"`},
	{"require.resolve", `require.resolve('./package.json')`, `"/workspace/package.json"`},
	{"JSON", `require('./package.json').name`, `"here"`},
	{"a package", `require('dep')`, `"/workspace/node_modules/dep/index.js"`},
	{"__dirname", `__dirname`, `"/workspace"`},
	{"names of one's own", `{ const require = 1, module = 2, exports = 3, __filename = 4, __dirname = 5; require + module + exports + __filename + __dirname }`, `15`},
	{"createRequire", "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);\nrequire('path').sep", `"/"`},
	{"TypeScript", "import path = require('path');\nconst a: string = path.sep;\nmodule.exports = { a } as const;", `{"a":"/"}`},
}

var commonJSFiles = map[string][]byte{
	"/workspace/package.json":              []byte(`{"name": "here"}`),
	"/workspace/node_modules/dep/index.js": []byte(`module.exports = __filename`),
}

func TestEvaluateCommonJS(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Files: commonJSFiles})
	for _, tc := range append(commonJSSnippets, struct{ name, code, want string }{"__filename", `__filename`, `"/workspace/snippet.mjs"`}) {
		e := harness.Evaluate(t, rt, tc.code, runtime.EvaluateOptions{})
		if string(e.Value) != tc.want || e.Error != nil {
			t.Errorf("%s: %s, %v; want %s", tc.name, e.Value, e.Error, tc.want)
		}
	}
}

func TestContextCommonJS(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Files: commonJSFiles})
	for _, tc := range harness.Some(commonJSSnippets) {
		c := newContext(t, rt, runtime.ContextOptions{})
		if e := cell(t, c, tc.code, runtime.EvaluateOptions{}); string(e.Value) != tc.want || e.Error != nil {
			t.Errorf("%s: %s, %v; want %s", tc.name, e.Value, e.Error, tc.want)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The exports of one cell are not the value of another.
func TestContextExports(t *testing.T) {
	c := newContext(t, harness.Create(t, runtime.Options{}), runtime.ContextOptions{})
	for _, step := range []struct{ code, want string }{
		{`exports.a = 1; void 0`, `{"a":1}`},
		{`const b = 2`, ``},
		{`module.exports = 5; const c = 2`, `5`},
		{`const d = 2`, ``},
		{`exports.b = d`, `{"b":2}`},
		{`module.exports === exports`, `true`},
		{`Object.freeze(globalThis); exports.c = 3`, `{"c":3}`},
		{`const e = 2`, ``},
	} {
		if e := cell(t, c, step.code, runtime.EvaluateOptions{}); string(e.Value) != step.want || e.Error != nil {
			t.Errorf("%s: %s, %v; want %s", step.code, e.Value, e.Error, step.want)
		}
	}
}

// With the option, a context keeps the last value in a variable, until code declares that
// variable.
func TestContextLastValue(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	c := newContext(t, rt, runtime.ContextOptions{LastValue: true})
	for _, step := range []struct{ code, want string }{
		{`_`, ``},
		{`6 * 7`, `42`},
		{`_ + 1`, `43`},
		{`Promise.resolve([_])`, `[43]`},
		{`_.length`, `1`},
		{`exports.a = 1`, `{"a":1}`},
		{`_.a`, `1`},
		{`const a = 1`, ``},
		{`_`, ``},
		{`_ = 5; 6`, `6`},
		{`_`, `5`},
	} {
		want(t, c, step.code, step.want)
	}
	want(t, newContext(t, rt, runtime.ContextOptions{}), `typeof _`, `"undefined"`)
	c = newContext(t, rt, runtime.ContextOptions{LastValue: true})
	for _, step := range []struct{ code, want string }{{`7`, `7`}, {`const _ = 8`, ``}, {`9`, `9`}, {`_`, `8`}} {
		want(t, c, step.code, step.want)
	}
}

// Errors have the lines and columns of the snippet, whatever it uses of CommonJS.
func TestEvaluateCommonJSErrors(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	e := harness.Evaluate(t, rt, "const os = require('os');\n\nmodule.exports = () => {\n  throw new Error(os.hostname())\n}", runtime.EvaluateOptions{})
	wantStack(t, e, "snippet.mjs:4:9")
	e = harness.Evaluate(t, rt, "const a = 1;\n  require('nosuch')", runtime.EvaluateOptions{})
	wantStack(t, e, "snippet.mjs:2:3")
	e = harness.Evaluate(t, rt, "exports.a = 1;\nexports.b.c.d = 2", runtime.EvaluateOptions{})
	wantStack(t, e, "snippet.mjs:2:11")
	e = harness.Evaluate(t, rt, "module.exports = Promise.reject(new Error('late'));\nvoid 0", runtime.EvaluateOptions{})
	wantStack(t, e, "snippet.mjs:1:33")
	rt = harness.Create(t, runtime.Options{Bindings: map[string]any{"module": 7}})
	if e = harness.Evaluate(t, rt, "module", runtime.EvaluateOptions{}); string(e.Value) != "7" {
		t.Errorf("a binding that is named module is %s, %v", e.Value, e.Error)
	}
}

func wantStack(t *testing.T, e *runtime.Evaluation, place string) {
	t.Helper()
	if e.Error == nil || !strings.Contains(e.Error.Stack, place) || e.Error.Frame == "" {
		t.Errorf("%s, %+v; want an error at %s", e.Value, e.Error, place)
	}
}
