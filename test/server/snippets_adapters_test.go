package server

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gaol/cmd/gaol/server/settings"
	"gaol/test/server/servertest"
)

// packages has stubs in the shape of frameworks.
const packages = "../../runtime/snippets/testdata/packages/node_modules"

// read reads settings of snippets, as a configuration file has them.
func read(t *testing.T, snippets string) settings.Snippets {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte(`{"snippets": `+snippets+`}`), 0o600); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs(packages)
	if err != nil {
		t.Fatal(err)
	}
	set, err := settings.Read(config, settings.Overrides{NodeModules: modules})
	if err != nil {
		t.Fatal(err)
	}
	return set.Snippets
}

// configured starts a server with settings of snippets.
func configured(t *testing.T, snippets string) *servertest.Server {
	t.Helper()
	set := read(t, snippets)
	s := servertest.Start(t, servertest.Options{Settings: func(o *settings.Settings) { o.Snippets = set }})
	t.Cleanup(func() {
		if text := s.Log.String(); strings.Contains(text, "level=ERROR") {
			t.Error(text)
		}
	})
	return s
}

const counter = `import { createModule, createSystem } from '@directive-run/core'
const count = createModule('count', { init: (facts) => { facts.n = 20 }, derive: { double: (facts) => facts.n * 2 } })
const system = createSystem({ module: count })
system.start()
system.facts.n++`

// With the adapter directive, the state of a system is in the result, and the adapter's lint rules
// apply. Requests may choose plain programs.
func TestDirective(t *testing.T) {
	s := configured(t, `{"adapter": "directive"}`)
	var info struct{ Adapter string }
	servertest.Send(t, s.Client(t, snippetUser), http.MethodGet, path, nil).Into(t, &info)
	if info.Adapter != "directive" {
		t.Errorf("%+v", info)
	}
	o := run(t, s, snippetUser, object{"files": []object{file("src/main.ts", "import './counter.js'"), file("src/counter.ts", counter)}})
	if len(o.Errors) != 0 || !maps.Equal(o.Facts, object{"n": 21.0}) || !maps.Equal(o.Derived, object{"double": 42.0}) {
		t.Errorf("%+v", o)
	}
	const banned = "export const id = process.pid"
	o = run(t, s, snippetUser, object{"source": banned})
	if len(o.Errors) != 1 || !strings.HasPrefix(o.Errors[0], "src/main.ts:1:19 — ") || len(o.Facts) != 0 {
		t.Errorf("%+v", o)
	}
	o = run(t, s, snippetUser, object{"source": banned, "adapter": "none"})
	if len(o.Errors) != 0 || o.Facts["id"] == nil {
		t.Errorf("%+v", o)
	}
	cs := overHTTP(t, s, snippetUser)
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if tool.Name == "run_in_sandbox" && tool.Description != "Execute a Directive snippet and return its observed behavior" {
			t.Error(tool.Description)
		}
	}
	res, _ := call(t, cs, "run_in_sandbox", object{"source": counter})
	if o, keys := structured(t, res); res.IsError || o.Derived["double"] != 42.0 || !slices.Equal(keys, sixKeys) {
		t.Errorf("%+v %v", o, keys)
	}
}

// An operator's adapter is named after its file.
func TestOwnAdapter(t *testing.T) {
	adapter := filepath.Join(t.TempDir(), "answer.mjs")
	if err := os.WriteFile(adapter, []byte("export function read() { return { facts: { answer: 42 } } }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := configured(t, fmt.Sprintf(`{"adapter": %q}`, adapter))
	for name, want := range map[string]object{"": {"answer": 42.0}, "answer": {"answer": 42.0}, "none": {"x": 1.0}} {
		body := object{"source": "export const x = 1"}
		if name != "" {
			body["adapter"] = name
		}
		if o := run(t, s, snippetUser, body); len(o.Errors) != 0 || !maps.Equal(o.Facts, want) {
			t.Errorf("%q: %+v", name, o)
		}
	}
}
