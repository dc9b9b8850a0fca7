package session

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gaol/cmd/gaol/server/settings"
	"gaol/runtime/client"
	"gaol/runtime/snippets"
	"gaol/test/server/servertest"
)

// testSnippets: a snippet has its logs, state and errors.
func testSnippets(t *testing.T, c *client.Client) {
	var lines []string
	in := snippets.Input{
		Source: "export const n: number = 6 * 7; console.log('n', n); console.error({ n }); export const own = {} as object", Timeout: 9 * time.Second,
		OnLog: func(line string) { lines = append(lines, line) },
	}
	out, err := c.RunSnippet(t.Context(), in, client.SnippetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	logs := []string{"[log] n 42", `[error] {"n":42}`}
	if !slices.Equal(out.Logs, logs) || !slices.Equal(lines, logs) || len(out.Errors) > 0 || out.TimedOut || out.DurationMs <= 0 || out.Usage.CPU <= 0 {
		t.Errorf("%+v, lines %q", out, lines)
	}
	var facts map[string]any
	if err := json.Unmarshal(out.Facts, &facts); err != nil || facts["n"] != 42.0 {
		t.Errorf("facts %s: %v", out.Facts, err)
	}
}

// testSnippetErrors: mistakes of a snippet are in its output, and mistakes of a request are errors.
func testSnippetErrors(t *testing.T, c *client.Client) {
	file := func(path, source string) snippets.Input {
		return snippets.Input{Files: []snippets.File{{Path: path, Source: source}}}
	}
	for name, tc := range map[string]struct {
		in    snippets.Input
		o     client.SnippetOptions
		error string // in the output
		code  string // of the error
	}{
		"throw":          {in: snippets.Input{Source: "console.log(1); throw new TypeError('no')"}, error: "TypeError: no"},
		"syntax":         {in: file("src/main.ts", "\nlet n: = 3"), error: "src/main.ts:2:"},
		"timeout":        {in: snippets.Input{Source: "console.log(1); for (;;);", Timeout: 200 * time.Millisecond}, error: "wall-clock budget of 200ms elapsed"},
		"no entry point": {in: file("src/other.ts", "1"), error: "src/main.ts"},
		"too large":      {in: snippets.Input{Source: strings.Repeat(" ", snippets.MaxBytes+1)}, error: strconv.Itoa(snippets.MaxBytes)},
		"neither":        {code: "invalid"},
		"both":           {in: snippets.Input{Source: "1", Files: file("src/main.ts", "1").Files}, code: "invalid"},
		"adapter":        {in: snippets.Input{Source: "1"}, o: client.SnippetOptions{Adapter: snippets.Adapter{Name: "none", Code: "1"}}, code: "forbidden"},
		"packages":       {in: snippets.Input{Source: "1"}, o: client.SnippetOptions{NodeModules: "/etc"}, code: "forbidden"},
		"network":        {in: snippets.Input{Source: "1"}, o: client.SnippetOptions{Permissions: "public"}, code: "invalid"},
	} {
		out, err := c.RunSnippet(t.Context(), tc.in, tc.o)
		if e, _ := errors.AsType[*client.Error](err); tc.code != "" {
			if e == nil || e.Code != tc.code {
				t.Errorf("%s: %v, want %s", name, err, tc.code)
			}
			continue
		}
		if err != nil || len(out.Errors) == 0 || !strings.Contains(out.Errors[0], tc.error) {
			t.Errorf("%s: %v, %+v, want %q", name, err, out, tc.error)
		}
	}
}

// testSnippetIsCanceled: the lines of a canceled snippet are in its output.
func testSnippetIsCanceled(t *testing.T, c *client.Client) {
	ctx, cancel := context.WithCancel(t.Context())
	out, err := c.RunSnippet(ctx, snippets.Input{Source: "console.log('begun'); setInterval(() => {}, 1000)", OnLog: func(string) { cancel() }}, client.SnippetOptions{})
	if !errors.Is(err, context.Canceled) || out == nil || !slices.Equal(out.Logs, []string{"[log] begun"}) || !slices.Contains(out.Errors, "sandbox: aborted by caller signal") {
		t.Errorf("%v, %+v", err, out)
	}
}

// TestSnippetQuota: snippets count as runs, until they have ended.
func TestSnippetQuota(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Settings: func(o *settings.Settings) { o.Tenant.Runs = 1 }})
	c := dial(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	var second error
	_, err := c.RunSnippet(ctx, snippets.Input{Source: "console.log(1); setInterval(() => {}, 1000)", OnLog: func(string) {
		_, second = c.RunSnippet(t.Context(), snippets.Input{Source: "1"}, client.SnippetOptions{})
		cancel()
	}}, client.SnippetOptions{})
	if !errors.Is(err, context.Canceled) || !isCode(second, "quota") {
		t.Errorf("%v, second: %v", err, second)
	}
	if out, err := c.RunSnippet(t.Context(), snippets.Input{Source: "1"}, client.SnippetOptions{}); err != nil || len(out.Errors) > 0 {
		t.Errorf("%v, %+v", err, out)
	}
}
