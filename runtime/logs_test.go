package runtime

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gaol/internal/snippet"
	"gaol/internal/wire"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/stdio"
)

func TestTruncate(t *testing.T) {
	for _, tc := range []struct {
		in   string
		most int
		want string
	}{{"", 1, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"üü", 2, "üü"}, {"ü🎉x", 2, "ü🎉…"}, {"\xff\xff", 1, "\xff…"}} {
		if got := truncate(tc.in, tc.most); got != tc.want {
			t.Errorf("%q at %d: %q, want %q", tc.in, tc.most, got, tc.want)
		}
	}
}

func newTestLogs(t *testing.T, code string, o EvaluateOptions) *logs {
	p, err := snippet.Module(code)
	if err != nil {
		t.Fatal(err)
	}
	o.MaxLogs, o.MaxLogLength = 3, 50
	sources := snippet.NewSources("/workspace/a b/snippet.mjs", guest.Dir)
	sources.Add(snippet.FileName, p, code)
	return newLogs(sources, o)
}

func TestLogsFailures(t *testing.T) {
	const code = "const a = 1;\nthrow a"
	for _, tc := range []struct {
		name   string
		res    Result
		failed *wire.Failure
		want   *GuestError
	}{
		{"nothing", Result{}, nil, nil},
		{"thrown", Result{ExitCode: 1}, &wire.Failure{Name: "E", Message: "m", Stack: "E: m\n    at f (file:///workspace/a%20b/snippet.mjs:2:7)\n    at node:internal/x:1:2\n    at g (node:fs:1:1)"},
			&GuestError{Name: "E", Message: "m", Stack: "E: m\n    at f (snippet.mjs:2:7)", Frame: snippet.Frame(code, 2, 7)}},
		{"thrown, and out of time: the kernel's word counts", Result{Cause: CauseTimeout}, &wire.Failure{Name: "Forged", Message: "by the guest"}, &GuestError{Name: "TimeoutError", Message: "the code took longer than 30s"}},
		{"exit", Result{ExitCode: 9}, nil, &GuestError{Name: "ExitError", Message: "the code ended its process with exit code 9"}},
		{"unsettled", Result{ExitCode: 13}, nil, &GuestError{Name: "UnsettledError", Message: "the code awaits a promise that nothing settles"}},
		{"memory, by the kernel", Result{Cause: CauseMemory, ExitCode: 137, Signal: "SIGKILL"}, nil, &GuestError{Name: "OutOfMemoryError", Message: "the code exceeded its memory limit"}},
		{"memory", Result{Cause: CauseMemory, ExitCode: 134}, nil, &GuestError{Name: "OutOfMemoryError", Message: "the code exceeded its memory limit: 0 MiB of heap"}},
		{"canceled", Result{Cause: CauseCanceled}, nil, &GuestError{Name: "CanceledError", Message: "the code was stopped by its host"}},
		{"signal", Result{Cause: CauseSignal, Signal: "SIGSEGV"}, nil, &GuestError{Name: "SignalError", Message: "the code was ended by SIGSEGV"}},
		{"processes", Result{Cause: CausePids, ExitCode: 1}, nil, &GuestError{Name: "LimitError", Message: "the code started too many processes or threads"}},
		{"processes, thrown", Result{Cause: CausePids, ExitCode: 1}, &wire.Failure{Name: "Error", Message: "spawn EAGAIN"}, &GuestError{Name: "Error", Message: "spawn EAGAIN"}},
		{"processor time", Result{Cause: CauseCPU}, nil, &GuestError{Name: "LimitError", Message: "the code exceeded its limit: cpu"}},
		{"a position out of range", Result{ExitCode: 1}, &wire.Failure{Name: "E", Stack: "at file:///workspace/a%20b/snippet.mjs:999999999:999999999 and snippet.mjs:0:0"}, &GuestError{Name: "E", Stack: "at snippet.mjs and snippet.mjs:0:0"}},
		{"another file with that name", Result{ExitCode: 1}, &wire.Failure{Name: "E", Stack: "at file:///workspace/snippet.mjs:2:7"}, &GuestError{Name: "E", Stack: "at file:///workspace/snippet.mjs:2:7"}},
		{"far too much", Result{ExitCode: 1}, &wire.Failure{Name: strings.Repeat("n", 300)}, &GuestError{Name: strings.Repeat("n", 256) + "…"}},
	} {
		got := newTestLogs(t, code, EvaluateOptions{}).conclude(&tc.res, &cell{failure: tc.failed}).Error
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tc.name, diff)
		}
	}
}

func TestLogsLogs(t *testing.T) {
	n := newTestLogs(t, "1", EvaluateOptions{})
	n.add(LogWarn, "w\xff")
	out := n.sink(LogStdout)
	out.Write([]byte("out\nrest"))
	out.Flush()
	e := n.conclude(&Result{}, &cell{})
	want := []Log{{LogWarn, "w\uFFFD", 0}, {LogStdout, "out", 0}, {LogStdout, "rest", 0}}
	if diff := cmp.Diff(want, e.Logs, cmpopts.IgnoreFields(Log{}, "At")); diff != "" || e.Truncated.Logs {
		t.Errorf("(-want +got)\n%s", diff)
	}
	n = newTestLogs(t, "1", EvaluateOptions{})
	for range 4 {
		n.add(LogLog, "more")
	}
	if e = n.conclude(&Result{}, &cell{}); len(e.Logs) != 3 || !e.Truncated.Logs {
		t.Errorf("%d of four lines, truncated: %v", len(e.Logs), e.Truncated.Logs)
	}
}

// Node's fatal report is removed from the output if the error contains it, and only then.
func TestLogsWithoutFatalReport(t *testing.T) {
	logs := []Log{{LogLog, "a", 0}, {LogStderr, "", 0}, {LogStderr, "<--- Last few GCs --->", 0}, {LogStderr, "[1:0x1] 30 ms: Mark-Compact", 0}}
	if got := withoutFatalReport(logs, &Result{Cause: CauseMemory}); len(got) != 1 {
		t.Errorf("%v remain", got)
	}
	if got := withoutFatalReport(logs, &Result{}); len(got) != 4 {
		t.Errorf("of a run with another cause %v remain", got)
	}
}

// A followed snippet's lines are sent when they are stored, and the reader waits for the
// consumer.
func TestLogsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(nil, EvaluateOptions{MaxLogs: 100, MaxLogLength: 3 << 10})
		l.feed = stdio.NewFeed[Event]()
		l.add(LogError, "one")
		l.sink(LogStdout).Write([]byte("two\nthr"))
		go func() {
			stderr := l.sink(LogStderr)
			for range 200 {
				stderr.Write([]byte(strings.Repeat("x", 3<<10) + "\n"))
			}
		}()
		synctest.Wait()
		if len(l.list) != 18 {
			t.Errorf("%d lines were read", len(l.list))
		}
		l.feed.End()
		synctest.Wait()
		l.conclude(&Result{}, &cell{})
		l.feed.Close()
		var got []Log
		l.feed.All(func(e Event) bool {
			if l, ok := e.(LogEvent); ok {
				got = append(got, l.Log)
			}
			return true
		})
		if !slices.Equal(got, l.list) || len(got) != 100 || got[1].Text != "two" || got[1].Level != LogStdout {
			t.Errorf("%d lines were sent, %d kept", len(got), len(l.list))
		}
	})
}
