package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/cmd/gaol/examplecheck"
	"gaol/cmd/gaol/server/settings"
	"gaol/runtime"
	"gaol/runtime/snippets"
	"gaol/runtime/snippets/lint"
)

// fakeSnippets is a runner that runs nothing. It records its options and inputs.
type fakeSnippets struct {
	mu       sync.Mutex
	options  snippets.Options
	inputs   []snippets.Input
	logs     []string
	output   snippets.Output
	err      error // beside the output
	closeErr error
	closed   int
}

func (f *fakeSnippets) open(o snippets.Options) (examplecheck.Runner, error) {
	f.options = o
	return f, nil
}

func (f *fakeSnippets) Run(_ context.Context, in snippets.Input) (*snippets.Output, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.logs {
		if in.OnLog != nil {
			in.OnLog(line)
		}
	}
	in.OnLog = nil // which cannot be compared
	f.inputs = append(f.inputs, in)
	out := f.output
	out.Logs, out.Errors = append([]string{}, f.logs...), append([]string{}, out.Errors...)
	for _, state := range []*json.RawMessage{&out.Facts, &out.Derived} {
		if *state == nil {
			*state = json.RawMessage("{}")
		}
	}
	return &out, f.err
}

func (f *fakeSnippets) Close() error { f.closed++; return f.closeErr }

// call runs the command line gaol snippet ARGS.
func (f *fakeSnippets) call(ctx context.Context, stdin string, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	a := &app{stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr, serverParts: serverParts{f.open}}
	code := a.main(ctx, append([]string{"snippet"}, args...))
	return outcome{code, stdout.String(), stderr.String()}
}

// snippetFiles writes files into a folder, which becomes the working directory.
func snippetFiles(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			err = os.WriteFile(name, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestSnippetFlags(t *testing.T) {
	snippetFiles(t, map[string]string{"x.ts": "1", "own.mjs": "export const read = 1;", "rules.json": `{"names": {"alert": "no window"}}`, "p/src/main.ts": "2", "p/src/a.ts": "3", "node_modules/x": ""})
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	one := []snippets.File{{Path: "src/main.ts", Source: "1"}}
	for _, tc := range []struct {
		args    string
		options snippets.Options
		input   snippets.Input
	}{
		{"x.ts", snippets.Options{}, snippets.Input{Files: one}},
		{"p", snippets.Options{}, snippets.Input{Files: []snippets.File{{Path: "src/a.ts", Source: "3"}, {Path: "src/main.ts", Source: "2"}}}},
		{"--adapter directive --no-lint x.ts", snippets.Options{Adapter: snippets.Directive, NoLint: true}, snippets.Input{Files: one}},
		{"--lint-rules rules.json x.ts", snippets.Options{Rules: &lint.Rules{
			DeniedImports: map[string]string{}, Names: map[string]string{"alert": "no window"}, Properties: map[string]string{},
		}}, snippets.Input{Files: one}},
		{"--adapter own.mjs x.ts", snippets.Options{Adapter: snippets.Adapter{Name: "own", Code: "export const read = 1;"}}, snippets.Input{Files: one}},
		{"--node-modules node_modules --network public x.ts", snippets.Options{NodeModules: dir + "/node_modules", Network: "public"}, snippets.Input{Files: one}},
		{"--isolation crun x.ts", snippets.Options{Sandbox: runtime.Options{Isolation: runtime.IsolationOCI, OCI: runtime.OCIOptions{Runtime: "crun"}}}, snippets.Input{Files: one}},
		{"--timeout 100ms --image i --store s x.ts", snippets.Options{Sandbox: runtime.Options{Image: "i", Store: "s"}}, snippets.Input{Files: one, Timeout: snippets.MinTimeout}},
	} {
		t.Run(tc.args, func(t *testing.T) {
			f := &fakeSnippets{}
			got := f.call(t.Context(), "", append([]string{"run"}, strings.Fields(tc.args)...)...)
			if got != (outcome{}) || f.closed != 1 {
				t.Errorf("%+v; closed %d times", got, f.closed)
			}
			tc.options.MaxConcurrent = 1
			if tc.options.Adapter == (snippets.Adapter{}) {
				tc.options.Adapter = snippets.None
			}
			if tc.input.Timeout == 0 {
				tc.input.Timeout = snippets.DefaultTimeout
			}
			if diff := cmp.Diff(tc.options, f.options); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]snippets.Input{tc.input}, f.inputs); diff != "" {
				t.Errorf("input (-want +got):\n%s", diff)
			}
		})
	}
}

// Wrong lint rules are mistakes in the command line, and nothing runs.
func TestLintRulesErrors(t *testing.T) {
	snippetFiles(t, map[string]string{
		"docs/x.ts": "1", "ok.json": "{}", "null.json": "null", "unknown.json": `{"name": {}}`, "rule.json": `{"constructs": ["delete"]}`,
		"two.json": "{} {}", "large.json": strings.Repeat(" ", settings.MaxLintRules+1),
	})
	for args, want := range map[string]string{
		"--lint-rules ok.json --no-lint": "--lint-rules and --no-lint exclude each other",
		"--lint-rules missing.json":      `"missing.json" for "--lint-rules" flag: no such file`,
		"--lint-rules docs":              `"docs" for "--lint-rules" flag: it is not a regular file`,
		"--lint-rules -":                 `"-" for "--lint-rules" flag: no such file`,
		"--lint-rules=":                  "--lint-rules",
		"--lint-rules null.json":         `"null.json" for "--lint-rules" flag: lint rules: want an object`,
		"--lint-rules unknown.json":      `"unknown.json" for "--lint-rules" flag: lint rules: name: unknown field`,
		"--lint-rules rule.json":         `unknown rule "delete"`,
		"--lint-rules two.json":          "invalid character '{' after top-level value",
		"--lint-rules large.json":        `"large.json" for "--lint-rules" flag: more than 1m`,
	} {
		for command, path := range map[string]string{"run": "docs/x.ts", "check": "docs"} {
			f := &fakeSnippets{}
			got := f.call(t.Context(), "1", append(append([]string{command}, strings.Fields(args)...), path)...)
			if got.code != 125 || !strings.Contains(got.stderr, want) || !strings.Contains(got.stderr, "see gaol snippet "+command+" --help") || f.inputs != nil {
				t.Errorf("%s %s: %+v, want %q", command, args, got, want)
			}
		}
	}
}

func TestSnippetOutput(t *testing.T) {
	snippetFiles(t, map[string]string{"x.ts": "1"})
	f := &fakeSnippets{logs: []string{"[log] a\x1b[2J", "[error] b"}}
	f.output = snippets.Output{
		Facts: json.RawMessage(`{"b":1,"a":"\u001b"}`), Errors: []string{"src/main.ts:1:2 — no\x07"}, DurationMs: 1.5,
		Denials: []runtime.Denial{{Scope: "network", Operation: "connect", Target: "a:1", Rule: "network.default", Count: 1}},
	}
	want := outcome{1, "[log] a\\x1b[2J\n[error] b\nfacts: {\n  \"b\": 1,\n  \"a\": \"\\u001b\"\n}\n",
		"error: x.ts:1:2 — no\\x07\ngaol: denied: network connect a:1 (network.default)\n"}
	if got := f.call(t.Context(), "", "run", "x.ts"); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	want = outcome{1, `{"logs":["[log] a\u001b[2J","[error] b"],"facts":{"b":1,"a":"\u001b"},"derived":{},"errors":["src/main.ts:1:2 — no\u0007"],"durationMs":1.5,"timedOut":false}` + "\n", ""}
	if got := f.call(t.Context(), "", "run", "--json", "x.ts"); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	f = &fakeSnippets{output: snippets.Output{TimedOut: true}}
	if got := f.call(t.Context(), "", "run", "x.ts"); got.code != 1 {
		t.Errorf("out of time: %+v", got)
	}
	f = &fakeSnippets{err: &snippets.InputError{Message: "bad"}, output: snippets.Output{Errors: []string{"bad"}}}
	if got := f.call(t.Context(), "", "run", "x.ts"); got != (outcome{1, "", "error: bad\n"}) {
		t.Errorf("bad input: %+v", got)
	}
	f = &fakeSnippets{closeErr: errors.New("jail remains")}
	if got := f.call(t.Context(), "", "run", "x.ts"); got.code != 125 || !strings.Contains(got.stderr, "gaol: jail remains") {
		t.Errorf("not closed: %+v", got)
	}
}

// A snippet that is interrupted still returns an output.
func TestSnippetInterrupted(t *testing.T) {
	snippetFiles(t, map[string]string{"x.ts": "1"})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(signalError{syscall.SIGINT})
	aborted := "sandbox: aborted by caller signal"
	f := &fakeSnippets{err: fmt.Errorf("snippets: %w", context.Canceled), output: snippets.Output{Errors: []string{aborted}}}
	got := f.call(ctx, "", "run", "--json", "x.ts")
	if got.code != 130 || !strings.Contains(got.stdout, `"errors":["`+aborted+`"]`) || got.stderr != "" || f.closed != 1 {
		t.Errorf("%+v, closed %d times", got, f.closed)
	}
}

func TestSnippetStdin(t *testing.T) {
	one := []snippets.File{{Path: "src/main.ts", Source: "1"}}
	for _, tc := range []struct {
		stdin string
		args  []string
		want  snippets.Input
	}{
		{"1", nil, snippets.Input{Source: "1"}},
		{`{"source": "1"}`, nil, snippets.Input{Source: `{"source": "1"}`}},
		{"{}", []string{"--json"}, snippets.Input{Source: "{}"}},
		{"{ a: 1 }", []string{"--json"}, snippets.Input{Source: "{ a: 1 }"}},
		{"\n {\t\"source\": \"1\"}\n", []string{"--json"}, snippets.Input{Files: one}},
		{`{"source": "1", "timeoutMs": 250}`, []string{"--json"}, snippets.Input{Files: one, Timeout: 250 * time.Millisecond}},
		{`{"source": "1", "timeoutMs": 0}`, []string{"--json"}, snippets.Input{Files: one, Timeout: snippets.MinTimeout}},
		{`{"source": "1", "timeoutMs": -5}`, []string{"--json"}, snippets.Input{Files: one, Timeout: snippets.MinTimeout}},
		{`{"source": "1", "timeoutMs": 9000000000000000}`, []string{"--json"}, snippets.Input{Files: one, Timeout: snippets.MaxTimeout}},
		{`{"source": "1"}`, []string{"--json", "--timeout", "2s"}, snippets.Input{Files: one, Timeout: 2 * time.Second}},
		{`{"source": ""}`, []string{"--json"}, snippets.Input{Files: []snippets.File{{Path: "src/main.ts"}}}}, // the runner rejects it
		{`{"files": [{"path": "a", "source": "1"}]}`, []string{"--json"}, snippets.Input{Files: []snippets.File{{Path: "a", Source: "1"}}}},
	} {
		f := &fakeSnippets{}
		got := f.call(t.Context(), tc.stdin, append(append([]string{"run"}, tc.args...), "-")...)
		if tc.want.Timeout == 0 {
			tc.want.Timeout = snippets.DefaultTimeout
		}
		if diff := cmp.Diff([]snippets.Input{tc.want}, f.inputs); diff != "" || got.code != 0 {
			t.Errorf("%s: %+v (-want +got)\n%s", tc.stdin, got, diff)
		}
	}
	for _, stdin := range []string{
		`{"a": 1}`, `{"source": 1}`, `{"source": "1"} 2`, `{"source": "1"`,
		`{"Source": "1"}`, `{"source": "1", "source": "2"}`, `{"files": [{"path": "a", "Source": "1"}]}`, "{\"source\": \"\xff\"}",
		`{"source": "1", "files": []}`, `{"source": "", "files": [{"path": "src/main.ts", "source": "1"}]}`, `{"timeoutMs": 100}`,
		`{"source": "1", "timeoutMs": 100.5}`, `{"source": "1", "timeoutMs": 1e300}`, `{"source": "1", "timeoutMs": "100"}`,
	} {
		f := &fakeSnippets{}
		if got := f.call(t.Context(), stdin, "run", "--json", "-"); got.code != 1 || !strings.Contains(got.stdout, `"errors":["input: `) || f.inputs != nil {
			t.Errorf("%s: %+v", stdin, got)
		}
	}
}

// All examples of a check run in one sandbox. Annotations are printed where GITHUB_ACTIONS is true.
func TestSnippetCheck(t *testing.T) {
	snippetFiles(t, map[string]string{"docs/x.md": "```ts run\n1\n```\n```js\n2\n```\n", "docs/y.ts": "3"})
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("GITHUB_ACTIONS", "")
	f := &fakeSnippets{}
	if got := f.call(t.Context(), "", "check", "docs"); got.code != 0 || !strings.HasPrefix(got.stdout, "2 examples: 2 passed") || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	if !f.options.Shared || f.options.MaxConcurrent < 2 || len(f.inputs) != 2 || f.closed != 1 {
		t.Errorf("%+v", f)
	}
	f = &fakeSnippets{output: snippets.Output{Errors: []string{"src/main.ts:1:1 — no"}}}
	if got := f.call(t.Context(), "", "check", "--all-fences", "docs"); got.code != 1 || len(f.inputs) != 3 || !strings.Contains(got.stdout, "docs/x.md:5:1 — no") {
		t.Errorf("%+v", got)
	}
	f = &fakeSnippets{}
	if got := f.call(t.Context(), "", "check", "--isolation", "runc", "docs"); got.code != 0 || len(f.inputs) != 2 || f.options.Sandbox.Isolation != runtime.IsolationOCI {
		t.Errorf("%+v, %+v", got, f)
	}
	f = &fakeSnippets{output: snippets.Output{Errors: []string{"src/main.ts:1:1 — no"}}}
	t.Setenv("GITHUB_ACTIONS", "true")
	if got := f.call(t.Context(), "", "check", "docs"); !strings.HasPrefix(got.stdout, "::error file=docs/x.md,line=2,col=1,") {
		t.Errorf("%+v", got)
	}
	if got := f.call(t.Context(), "", "check", "--github=false", "docs"); strings.Contains(got.stdout, "::error") {
		t.Errorf("%+v", got)
	}
}
