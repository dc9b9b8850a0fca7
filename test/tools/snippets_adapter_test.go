package tools

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime/snippets"
	"gaol/runtime/snippets/lint"
)

// counter is a module that loads a value.
const counter = `
	import { createModule, createSystem } from '@directive-run/core';
	const counter = createModule('counter', {
		init: (facts) => { facts.count = 1; facts.loaded = false },
		derive: { double: (facts) => facts.count * 2, broken: () => { throw new Error('x') } },
		constraints: { load: { when: (facts) => !facts.loaded, require: { type: 'LOAD' } } },
		resolvers: { loader: { requirement: 'LOAD', resolve: async (_, { facts }) => { await load(facts) } } },
	});
	const system = createSystem({ module: counter });
	system.start();
	`

const loads = counter + `async function load(facts) { facts.loaded = true; facts.count = 7 }` + "\n"

const (
	loadedFacts   = `{"count":7,"loaded":true}`
	loadedDerived = `{"double":14,"broken":"[error: x]"}`
)

// systems are snippets with the adapter directive.
var systems = []struct {
	name, source   string
	logs           []string
	facts, derived string
	errors         []string
}{
	{"one module", loads, nil, loadedFacts, loadedDerived, nil},
	{"proxies", loads + `console.log(system.facts, [system.facts], system.derive)`,
		[]string{`[log] {"count":7,"loaded":true} [{"count":7,"loaded":true}] {"double":14,"broken":"[error: x]"}`}, loadedFacts, loadedDerived, nil},
	{"several modules", `
			import { createModule, createSystem } from '@directive-run/core';
			import { createQuery } from '@directive-run/query';
			import { core } from '@directive-run/timeline';
			const a = createModule('a', { init: (facts) => { facts.n = 1 }, derive: { next: (facts) => facts.n + 1 } });
			createSystem({ modules: { a, b: createQuery('q', async () => 'data') } }).start();
			console.log(core.createModule === createModule);`,
		[]string{"[log] true"}, `{"a":{"n":1},"b":{"status":"done","data":"data"}}`, `{"a":{"next":2},"b":{"ready":true}}`, nil},
	{"a throw", loads + "await system.settle();\nthrow new Error('late');", nil, loadedFacts, loadedDerived, []string{"Error: late\n    at src/main.ts:13:7"}},
	{"a resolver that throws", counter + `async function load() { throw new TypeError('no data') }`, nil,
		`{"count":1,"loaded":false}`, `{"double":2,"broken":"[error: x]"}`, []string{"TypeError: no data\n    at load (src/main.ts:11:32)\n    at Object.resolve (src/main.ts:7:88)\n    at src/main.ts:10:9"}},
	{"no system", `export const a = 1`, nil, `{}`, `{}`, nil},
}

func TestDirective(t *testing.T) {
	r := newRunner(t, snippets.Options{Adapter: snippets.Directive, NodeModules: packages})
	for _, tc := range systems {
		out := run(t, r, snippets.Input{Source: tc.source, Timeout: snippets.MaxTimeout})
		if string(out.Facts) != tc.facts || string(out.Derived) != tc.derived || out.TimedOut {
			t.Errorf("%s: facts %s, derived %s, timed out %v", tc.name, out.Facts, out.Derived, out.TimedOut)
		}
		if diff := cmp.Diff(append([]string{}, tc.errors...), out.Errors); diff != "" {
			t.Errorf("%s: errors: %s", tc.name, diff)
		}
		if diff := cmp.Diff(append([]string{}, tc.logs...), out.Logs); diff != "" {
			t.Errorf("%s: logs: %s", tc.name, diff)
		}
	}
}

// A system that does not settle: the errors name the pending tasks.
func TestDirectiveInFlight(t *testing.T) {
	r := newRunner(t, snippets.Options{Adapter: snippets.Directive, NodeModules: packages})
	source := counter + `function load() { return new Promise(() => {}) }`
	limit := time.Second
	out := run(t, r, snippets.Input{Source: source, Timeout: limit})
	if string(out.Facts) == "{}" { // on a busy machine
		limit = snippets.MaxTimeout
		out = run(t, r, snippets.Input{Source: source, Timeout: limit})
	}
	want := []string{fmt.Sprintf("wall-clock budget of %dms elapsed", limit.Milliseconds()), "still in flight: loader"}
	if diff := cmp.Diff(want, out.Errors); diff != "" || !out.TimedOut || string(out.Facts) != `{"count":1,"loaded":false}` {
		t.Errorf("%s, facts %s", diff, out.Facts)
	}
	out = run(t, r, snippets.Input{Source: source + `; const { settle } = system; system.settle = () => settle(100)`, Timeout: snippets.MaxTimeout})
	if len(out.Errors) != 1 || !strings.Contains(out.Errors[0], "resolvers in flight: loader") || out.TimedOut {
		t.Errorf("%q", out.Errors)
	}
}

// The adapter's lint rules are on by default.
func TestDirectiveLint(t *testing.T) {
	source := "import 'node:fs';\nconsole.log(process);"
	out := run(t, newRunner(t, snippets.Options{Adapter: snippets.Directive}), snippets.Input{Source: source})
	if len(out.Errors) != 2 || !strings.HasPrefix(out.Errors[0], "src/main.ts:1:8 — ") || !strings.HasPrefix(out.Errors[1], "src/main.ts:2:13 — ") || len(out.Logs) > 0 {
		t.Errorf("%q, %q", out.Errors, out.Logs)
	}
	rules := &lint.Rules{Names: map[string]string{"process": "a reason"}}
	out = run(t, newRunner(t, snippets.Options{Rules: rules}), snippets.Input{Source: source})
	if len(out.Errors) != 1 || !strings.Contains(out.Errors[0], "a reason") || len(out.Logs) > 0 {
		t.Errorf("with other rules: %q, %q", out.Errors, out.Logs)
	}
	out = run(t, newRunner(t, snippets.Options{Adapter: snippets.Directive, NoLint: true}), snippets.Input{Source: source})
	if len(out.Errors) > 0 || len(out.Logs) != 1 {
		t.Errorf("without lint: %q, %q", out.Errors, out.Logs)
	}
}

// The linter reads JSX in src/main.ts, as the bundler does, and finds denied names in it.
func TestDirectiveJSX(t *testing.T) {
	r := newRunner(t, snippets.Options{Adapter: snippets.Directive, NodeModules: packages})
	source := "const React = { createElement: (...parts: any[]) => parts };\n" + loads + `console.log(<p id="a">{1 as number}</p>);`
	out := run(t, r, snippets.Input{Source: source, Timeout: snippets.MaxTimeout})
	if diff := cmp.Diff([]string{`[log] ["p",{"id":"a"},1]`}, out.Logs); diff != "" || len(out.Errors) > 0 || string(out.Facts) != loadedFacts {
		t.Errorf("%s, %q, facts %s", diff, out.Errors, out.Facts)
	}
	out = run(t, r, snippets.Input{Source: "export const a = <p>{process.pid}</p>;"})
	if len(out.Errors) != 1 || !strings.HasPrefix(out.Errors[0], "src/main.ts:1:22 — process is not allowed") {
		t.Errorf("%q", out.Errors)
	}
}

// Other rules replace them.
func TestRules(t *testing.T) {
	rules, err := lint.Parse([]byte(`{"names": {"process": "use it not"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, adapter := range []snippets.Adapter{snippets.None, snippets.Directive} {
		out := run(t, newRunner(t, snippets.Options{Adapter: adapter, Rules: &rules}), snippets.Input{Source: "import 'node:fs';\nconsole.log(process);"})
		if len(out.Errors) != 1 || out.Errors[0] != "src/main.ts:2:13 — process is not allowed: use it not" {
			t.Errorf("%s: %q", adapter.Name, out.Errors)
		}
	}
}

// documented returns the code block of docs/snippets.md that begins with a line.
func documented(t *testing.T, first string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/snippets.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "\n"+first+"\n")
	block, _, closed := strings.Cut(block, "\n```")
	if !found || !closed {
		t.Fatalf("docs/snippets.md has no block %s", first)
	}
	return block
}

// The adapter in the documentation works.
func TestZustand(t *testing.T) {
	adapter := snippets.Adapter{Name: "zustand", Code: documented(t, "// zustand.mjs")}
	r := newRunner(t, snippets.Options{Adapter: adapter, NodeModules: packages})
	out := run(t, r, snippets.Input{Source: `
		import { create } from 'zustand';
		import { createStore } from 'zustand/vanilla';
		const useBears = create<{ bears: number }>()((set) => ({ bears: 0, add: () => set((s) => ({ bears: s.bears + 1 })) }));
		const fish = createStore(() => ({ fish: 3 }));
		useBears.getState().add();
		setTimeout(() => fish.setState({ fish: 4 }), 5);
		console.log(useBears, fish.getState());
		await new Promise((done) => setTimeout(done, 20));
		throw new Error('end');`})
	if want := `{"bears":1,"add":"[function add]","fish":4}`; string(out.Facts) != want {
		t.Errorf("facts %s, want %s", out.Facts, want)
	}
	if diff := cmp.Diff([]string{`[log] {"bears":1,"add":"[function add]"} {"fish":3}`}, out.Logs); diff != "" {
		t.Error(diff)
	}
	if len(out.Errors) != 1 || !strings.HasPrefix(out.Errors[0], "Error: end") {
		t.Errorf("%q", out.Errors)
	}
}

// A broken adapter is the operator's mistake, not the snippet's.
func TestBrokenAdapter(t *testing.T) {
	for code, want := range map[string]string{
		"export const wrap = {":                                    "adapter broken: SyntaxError",
		"throw new Error('no')":                                    "adapter broken: Error: no",
		"export const wrap = { a: { 'b c': 1 } }":                  "wrap: b c of a is not a function",
		"process.exit(3)":                                          "adapter broken: ExitError",
		"export const wrap = null":                                 "adapter broken: TypeError",
		"import 'nosuch'":                                          "adapter broken: Error: Cannot find package",
		"export const wrap = { get a() { throw new Error('g') } }": "adapter broken: Error: g",
	} {
		r := newRunner(t, snippets.Options{Adapter: snippets.Adapter{Name: "broken", Code: code}, Shared: true})
		out, err := r.Run(t.Context(), snippets.Input{Source: "1"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", code, out, err)
		}
	}
	for code, want := range map[string]string{
		"export const read = () => { throw new Error('unreadable') }":       "the state could not be read: Error: unreadable",
		"export const read = () => ({ facts: 5 })":                          "the state is not two objects of JSON, or is too large",
		"export const read = () => ({ derived: [] })":                       "the state is not two objects of JSON, or is too large",
		"export const read = () => ({ facts: { x: 'x'.repeat(2 << 20) } })": "the limit is 1048576",
		"export const settle = () => { throw new Error('unsettled') }":      "Error: unsettled",
		"export const settle = () => new Promise(() => {})":                 "the snippet awaits a promise that nothing settles",
	} {
		r := newRunner(t, snippets.Options{Adapter: snippets.Adapter{Name: "broken", Code: code}, Shared: true})
		out := run(t, r, snippets.Input{Source: "1"})
		if len(out.Errors) != 1 || !strings.Contains(out.Errors[0], want) {
			t.Errorf("%s: %q", code, out.Errors)
		}
	}
}

// An adapter with settle decides when a snippet has finished.
func TestSettle(t *testing.T) {
	adapter := snippets.Adapter{Name: "test", Code: `export const settle = async () => { await null; console.log('settled') }`}
	r := newRunner(t, snippets.Options{Adapter: adapter})
	out := run(t, r, snippets.Input{Source: `setInterval(() => {}, 1000); console.log('main')`})
	if diff := cmp.Diff([]string{"[log] main", "[log] settled"}, out.Logs); diff != "" || out.TimedOut || len(out.Errors) > 0 {
		t.Errorf("%s, %q", diff, out.Errors)
	}
}
