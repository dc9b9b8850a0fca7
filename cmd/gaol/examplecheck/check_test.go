package examplecheck

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime/snippets"
)

// fake is a runner whose output depends on the source: the lines "error TEXT", "log TEXT",
// "facts JSON", "timeout" and "invalid".
type fake struct {
	opened, ran, closed atomic.Int32
	fail                error
}

func (f *fake) open() (Runner, error) { f.opened.Add(1); return f, nil }
func (f *fake) Close() error          { f.closed.Add(1); return nil }

func (f *fake) Run(_ context.Context, in snippets.Input) (*snippets.Output, error) {
	f.ran.Add(1)
	if f.fail != nil {
		return nil, f.fail
	}
	empty := json.RawMessage("{}")
	out := &snippets.Output{Logs: []string{}, Facts: empty, Derived: empty, Errors: []string{}, DurationMs: float64(f.ran.Load())}
	var err error
	for _, line := range strings.Split(in.Files[0].Source, "\n") {
		word, rest, _ := strings.Cut(strings.TrimRight(line, "\r"), " ")
		switch word {
		case "error":
			out.Errors = append(out.Errors, rest)
		case "log":
			out.Logs = append(out.Logs, "[log] "+rest)
		case "facts":
			out.Facts = json.RawMessage(rest)
		case "timeout":
			out.TimedOut = true
		case "invalid":
			err = &snippets.InputError{Code: snippets.InputInvalid, Message: rest}
			out.Errors = append(out.Errors, rest)
		}
	}
	return out, err
}

// find writes a page of the examples and finds them.
func find(t *testing.T, dir, page string) []*Example {
	t.Helper()
	err := os.WriteFile(filepath.Join(dir, "x.md"), []byte(page), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	set, err := Find(t.Context(), []string{dir}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	for _, e := range set.Examples {
		if e.File, err = filepath.Rel(dir, e.File); err != nil {
			t.Fatal(err)
		}
	}
	return set.Examples
}

// check checks the page of dir, and returns the report.
func check(t *testing.T, dir, page string, o Options) *Report {
	t.Helper()
	o.Workers = 3
	if o.Progress == nil {
		o.Progress = func(int) {}
	}
	set, err := Find(t.Context(), []string{dir}, false)
	if page != "" {
		if err := os.WriteFile(filepath.Join(dir, "x.md"), []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		set, err = Find(t.Context(), []string{dir}, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	r, err := Check(t.Context(), set.Examples, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// describe returns the results, one a line, with paths without dir.
func describe(r *Report, dir string) (lines []string) {
	for _, result := range r.Results {
		line := result.title() + " " + string(result.Status)
		for _, m := range result.Errors {
			line += " | " + m.String()
		}
		lines = append(lines, strings.ReplaceAll(line, dir+"/", ""))
	}
	return lines
}

func fenced(info, code string) string { return "```" + info + "\n" + code + "\n```\n" }

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	f := &fake{}
	r := check(t, dir, fenced("ts run", "log a")+ // line 1
		fenced("ts run", "error src/main.ts:1:3 — no\nerror TypeError: x\\n    at src/main.ts:2:1")+ // line 4
		fenced("ts run error", "error e")+ // 8
		fenced("ts run error", "log a")+ // 11
		fenced(`ts run error="two"`, "error e two")+ // 14
		fenced(`ts run error="two"`, "error e")+ // 17
		fenced(`ts run skip="no reason"`, "error e")+ // 20
		fenced("ts run", "timeout")+ // 23
		fenced("ts run error", "timeout\nerror wall")+ // 26
		fenced(`ts run error="wall"`, "timeout\nerror wall")+ // 30
		fenced("ts run", "invalid too many files")+ // 34
		fenced("ts run skip", "log a"), // 37
		Options{Open: f.open})
	want := []string{
		"x.md:1 #1 passed",
		`x.md:4 #2 failed | x.md:5:3 — no | x.md:6:1 — TypeError: x\n    at x.md:6:1`,
		"x.md:8 #3 passed",
		"x.md:11 #4 failed | x.md:11 — an error is expected, and there was none",
		"x.md:14 #5 passed",
		`x.md:17 #6 failed | x.md:17 — an error with the text "two" is expected | x.md:17 — e`,
		"x.md:20 #7: no reason skipped",
		"x.md:23 #8 failed | x.md:23 — it ran out of time",
		"x.md:26 #9 failed | x.md:26 — an error is expected, and there was none | x.md:26 — wall",
		"x.md:30 #10 passed",
		"x.md:34 #11 failed | x.md:34 — too many files",
		`x.md:37 #12 failed | x.md:37 — skip needs a reason: skip="needs a browser"`,
	}
	if diff := cmp.Diff(want, describe(r, dir)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if r.Passed != 4 || r.Failed != 7 || r.Skipped != 1 {
		t.Errorf("%+v", r)
	}
	if f.opened.Load() != 1 || f.ran.Load() != 10 || f.closed.Load() != 1 {
		t.Errorf("opened %d, ran %d, closed %d", f.opened.Load(), f.ran.Load(), f.closed.Load())
	}
}

func TestCheckFails(t *testing.T) {
	f := &fake{fail: errors.New("no jails")}
	list := find(t, t.TempDir(), fenced("ts run", "log a")+fenced("ts run", "log b"))
	if _, err := Check(t.Context(), list, Options{Progress: func(int) {}, Open: f.open, Workers: 1}); !errors.Is(err, f.fail) || f.closed.Load() != 1 {
		t.Errorf("%v; closed %d times", err, f.closed.Load())
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	f = &fake{}
	if _, err := Check(ctx, list, Options{Progress: func(int) {}, Open: f.open, Workers: 1}); !errors.Is(err, why) || f.ran.Load() > 0 {
		t.Errorf("canceled: %v, %d runs", err, f.ran.Load())
	}
	if _, err := Check(t.Context(), list, Options{Open: func() (Runner, error) { return nil, why }, Workers: 1}); !errors.Is(err, why) {
		t.Error(err)
	}
}

func TestProgress(t *testing.T) {
	f := &fake{}
	var seen []int
	check(t, t.TempDir(), fenced("ts run", "log a")+fenced("ts run skip=x", "log a")+fenced("ts run", "log b"),
		Options{Open: f.open, Progress: func(n int) { seen = append(seen, n) }})
	if diff := cmp.Diff([]int{1, 2, 3}, seen); diff != "" {
		t.Error(diff)
	}
}
