package examplecheck

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	dir := t.TempDir()
	f := &fake{}
	r := check(t, dir, fenced("ts run example=a", "log a")+fenced("ts run example=b", "log \x1b[2J\nerror src/main.ts:1:2 — \x1b]0;x\x07")+fenced("ts run skip=why", "a"), Options{Open: f.open})
	r.DurationMs = 123
	got := strings.ReplaceAll(r.Text(TextOptions{Verbose: true}), dir+"/", "")
	want := `ok   x.md:1 a
FAIL x.md:4 b
    x.md:5:2 — \x1b]0;x\x07
    its last lines:
    [log] \x1b[2J
skip x.md:8 #1: why
3 examples: 1 passed, 1 failed, 1 skipped; 120ms
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if short := r.Text(TextOptions{}); strings.Contains(short, "ok ") || strings.Contains(short, "skip ") || !strings.HasPrefix(short, "FAIL ") {
		t.Errorf("%s", short)
	}
	if colored := r.Text(TextOptions{Colors: true}); !strings.HasPrefix(colored, "\x1b[31mFAIL\x1b[0m ") {
		t.Errorf("%q", colored)
	}
}

// Nothing that an example prints, or is called, becomes a command of GitHub's runner.
func TestGitHub(t *testing.T) {
	e := &Example{File: "docs/a,b:c%.md", Line: 3, Name: "n"}
	hostile := "x%\r\n::error::y"
	r := &Report{Results: []*Result{
		{Example: e, Status: Failed, Errors: []Message{{File: e.File, Line: 7, Column: 5, Text: hostile}, {File: e.File, Line: 3, Text: "z: a,b"}}},
		{Example: &Example{File: "y.ts", Line: 1}, Status: Failed, Errors: []Message{{File: "/w/s/y.ts", Line: 1, Text: "t"}}, Diff: "-a\n+b\n"},
	}}
	want := `::error file=docs/a%2Cb%3Ac%25.md,line=7,col=5,title=Example n failed::x%25%0D%0A::error::y
::error file=docs/a%2Cb%3Ac%25.md,line=3,title=Example n failed::z: a,b
::error file=s/y.ts,line=1,title=Example failed::t%0A-a%0A+b%0A
`
	if diff := cmp.Diff(want, r.GitHub("/w")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	lines := strings.Split(WithoutCommands("::error::y\n::resume::\n"), "\n")
	token, ok := strings.CutPrefix(lines[0], "::stop-commands::")
	if !ok || len(token) < 20 || lines[3] != "::"+token+"::" || len(lines) != 5 {
		t.Errorf("%q", lines)
	}
	if again := WithoutCommands(""); strings.Contains(again, token) {
		t.Error("the token can be guessed")
	}
}

func TestJSONReport(t *testing.T) {
	dir := t.TempDir()
	f := &fake{}
	r := check(t, dir, fenced("ts run", "error src/main.ts:1:2 — <b>")+fenced("ts run skip=why", "a"), Options{Open: f.open})
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`"durationMs":\d+`).ReplaceAllString(strings.ReplaceAll(string(text), dir+"/", ""), `"durationMs":0`)
	want := `{"examples":[{"file":"x.md","line":1,"name":"#1","status":"failed",` +
		`"errors":[{"file":"x.md","line":2,"column":2,"message":"\u003cb\u003e"}],` +
		`"output":{"logs":[],"facts":{},"derived":{},"errors":["src/main.ts:1:2 — \u003cb\u003e"],"durationMs":0,"timedOut":false}},` +
		`{"file":"x.md","line":4,"name":"#2","status":"skipped","reason":"why","errors":[]}],` +
		`"passed":0,"failed":1,"skipped":1,"durationMs":0}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestExpected(t *testing.T) {
	dir := t.TempDir()
	code := filepath.Join(dir, "a.ts")
	write := func(text string) {
		if err := os.WriteFile(code, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := &fake{}
	run := func(page string, update bool) *Report {
		return check(t, dir, page, Options{Open: f.open, Update: update})
	}
	write("log a\nfacts {\"z\":1.50,\"b\":\"<\"}")
	page := fenced("ts run example=p", "log p") + fenced("ts run", "log q") + fenced("ts run", "error e")
	if r := run(page, true); r.Passed != 3 || r.Failed != 1 {
		t.Fatalf("%q", describe(r, dir))
	}
	kept := map[string]string{
		"a.ts.expected.json": "{\n  \"derived\": {},\n  \"errors\": [],\n  \"facts\": {\n    \"b\": \"<\",\n    \"z\": 1.50\n  },\n  \"logs\": [\n    \"[log] a\"\n  ],\n  \"timedOut\": false\n}\n",
		"x.md.expected.json": "",
	}
	for name, want := range kept {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || want != "" && string(text) != want {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		kept[name] = string(text)
	}
	if r := run(page, false); r.Failed != 1 {
		t.Errorf("nothing changed: %q", describe(r, dir))
	}
	write("log b\nfacts {\"b\":\"<\",\"z\":1.50}")
	r := run(strings.Replace(page, "log q", "log r", 1), false)
	want := []string{
		"a.ts:1 failed | a.ts:1 — the output is not that of a.ts.expected.json; gaol snippet check --update accepts it",
		"x.md:1 p passed",
		"x.md:4 #1 failed | x.md:4 — the output is not that of x.md.expected.json; gaol snippet check --update accepts it",
		"x.md:7 #2 failed | x.md:7 — e",
	}
	if diff := cmp.Diff(want, describe(r, dir)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if d := r.Results[0].Diff; !strings.Contains(d, "\n-    \"[log] a\"\n+    \"[log] b\"\n") || strings.Contains(d, "\n-    \"z\"") {
		t.Errorf("%s", d)
	}
	if r := run("", true); r.Failed != 1 { // only the example with an error
		t.Errorf("%q", describe(r, dir))
	}
	if r := run("", false); r.Failed != 1 {
		t.Errorf("updated: %q", describe(r, dir))
	}
	if err := os.WriteFile(filepath.Join(dir, "a.ts.expected.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run("", false); r.Results[0].Status != Failed || r.Results[0].Errors[0].File != code+".expected.json" {
		t.Errorf("damaged: %q", describe(r, dir))
	}
}

// An update keeps the output of examples that fail or are skipped, and drops that of others.
func TestExpectedIsKept(t *testing.T) {
	dir := t.TempDir()
	f := &fake{}
	run := func(page string) string {
		check(t, dir, page, Options{Open: f.open, Update: true})
		text, err := os.ReadFile(filepath.Join(dir, "x.md.expected.json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := run(fenced("ts run example=a", "log a") + fenced("ts run example=b", "log b"))
	if got := run(fenced("ts run example=a", "error e") + fenced("ts run example=b skip=why", "log c")); got != first {
		t.Errorf("(-want +got)\n%s", cmp.Diff(first, got))
	}
	if got := run(fenced("ts run example=b", "log b")); strings.Contains(got, `"a"`) || !strings.Contains(got, `"b"`) {
		t.Errorf("%s", got)
	}
}
