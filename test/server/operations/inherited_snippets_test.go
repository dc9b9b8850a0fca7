package operations

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gaol/runtime/client"
	"gaol/runtime/snippets"
	"gaol/test/server/servertest"
)

// stubs has packages in the shape of a framework's.
const stubs = "../../../runtime/snippets/testdata/packages/node_modules"

const counter = `import { createModule, createSystem } from "@directive-run/core";
const counter = createModule("counter", { init: (facts: { n: number }) => { facts.n = 1; }, derive: { double: (facts: { n: number }) => 2 * facts.n } });
const system = createSystem({ module: counter });
system.start();
system.facts.n = 21;`

// trustedSnippet is a snippet with its facts and first error, or with the code of the request's error.
type trustedSnippet struct {
	source string
	o      client.SnippetOptions
	facts  string
	error  string
	code   string
}

func trustedSnippets(packages string) map[string]trustedSnippet {
	own := snippets.Adapter{Name: "own", Code: `export const read = () => ({ facts: { own: true } })`}
	return map[string]trustedSnippet{
		"framework":        {counter, client.SnippetOptions{Adapter: snippets.Adapter{Name: "directive"}, NodeModules: packages}, `{"n":21}`, "", ""},
		"own adapter":      {counter, client.SnippetOptions{Adapter: own, NodeModules: packages}, `{"own":true}`, "", ""},
		"no packages":      {counter, client.SnippetOptions{}, `{}`, "@directive-run/core", ""},
		"rules":            {`export const n = eval("1")`, client.SnippetOptions{Adapter: snippets.Adapter{Name: "directive"}, NodeModules: packages}, `{}`, "src/main.ts:1:18 — ", ""},
		"no lint":          {`eval("1")`, client.SnippetOptions{Adapter: snippets.Adapter{Name: "directive"}, NodeModules: packages, NoLint: true}, `{}`, "", ""},
		"network":          {`export const n = 1`, client.SnippetOptions{Permissions: "public"}, `{"n":1}`, "", ""},
		"relative folder":  {`1`, client.SnippetOptions{NodeModules: "node_modules"}, "", "", "invalid"},
		"missing folder":   {`1`, client.SnippetOptions{NodeModules: "/none"}, "", "", "invalid"},
		"file":             {`1`, client.SnippetOptions{NodeModules: "/etc/passwd"}, "", "", "invalid"},
		"unknown adapter":  {`1`, client.SnippetOptions{Adapter: snippets.Adapter{Name: "own"}}, "", "", "invalid"},
		"unknown preset":   {`1`, client.SnippetOptions{Permissions: "all"}, "", "", "invalid"},
		"broken adapter":   {`1`, client.SnippetOptions{Adapter: snippets.Adapter{Name: "own", Code: "export const = 1"}}, "", "", "internal"},
		"throwing adapter": {`1`, client.SnippetOptions{Adapter: snippets.Adapter{Name: "own", Code: "throw new Error('adapter')"}}, "", "", "internal"},
	}
}

// TestSnippets: the client chooses packages and adapters.
func TestSnippets(t *testing.T) {
	packages, err := filepath.Abs(stubs)
	if err != nil {
		t.Fatal(err)
	}
	c := startInherited(t, servertest.User{}).session()
	for name, tc := range trustedSnippets(packages) {
		out, err := c.RunSnippet(t.Context(), snippets.Input{Source: tc.source}, tc.o)
		if e, _ := errors.AsType[*client.Error](err); tc.code != "" {
			if e == nil || e.Code != tc.code {
				t.Errorf("%s: %v, want the code %s", name, err, tc.code)
			}
			continue
		}
		if err != nil || tc.error == "" && len(out.Errors) > 0 || tc.error != "" && (len(out.Errors) == 0 || !strings.Contains(out.Errors[0], tc.error)) {
			t.Errorf("%s: %v, %+v, want %q", name, err, out, tc.error)
			continue
		}
		if !json.Valid(out.Facts) || string(out.Facts) != tc.facts {
			t.Errorf("%s: facts %s, want %s", name, out.Facts, tc.facts)
		}
	}
}

// TestEndDuringSnippet: a snippet ends with the connection. The check at the end of all tests finds leftovers.
func TestEndDuringSnippet(t *testing.T) {
	p := startInherited(t, servertest.User{})
	c := p.session()
	in := snippets.Input{Source: "console.log(1); for (;;);", Timeout: 10 * time.Second, OnLog: func(string) { _ = p.conn.Close() }}
	if out, err := c.RunSnippet(context.Background(), in, client.SnippetOptions{}); !errors.Is(err, client.ErrDisconnected) {
		t.Errorf("%v, %+v", err, out)
	}
	p.expectEnd()
}
