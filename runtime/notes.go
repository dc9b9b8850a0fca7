package runtime

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"gaol/internal/snippet"
	"gaol/internal/wire"
)

// Log is a line that a snippet printed.
type Log struct {
	Level LogLevel
	Text  string        // as Node prints it, without the final newline; it may have newlines inside
	At    time.Duration // since the evaluation began, as the host's clock has it
}

// LogLevel is which of console's methods printed a line.
type LogLevel string

// The levels: console's methods count as one of its first five. What is written past
// console, such as by process.stdout.write or by a child process, is of the last two.
const (
	LogDebug  LogLevel = "debug"
	LogLog    LogLevel = "log"
	LogInfo   LogLevel = "info"
	LogWarn   LogLevel = "warn"
	LogError  LogLevel = "error"
	LogStdout LogLevel = "stdout"
	LogStderr LogLevel = "stderr"
)

var logLevels = map[wire.Level]LogLevel{
	wire.LevelDebug: LogDebug, wire.LevelLog: LogLog, wire.LevelInfo: LogInfo, wire.LevelWarn: LogWarn, wire.LevelError: LogError,
}

// notes are what an evaluation leaves besides its value.
type notes struct {
	sources *sources
	options EvaluateOptions
	began   time.Time

	stdout, stderr *lineSplitter // nil for a cell, which has them from its context

	feed *feed // of who follows; nil: nobody does

	mu     sync.Mutex
	logs   []Log
	more   bool
	closed bool // it takes no more
}

func newNotes(p *snippet.Program, code string, o EvaluateOptions) *notes {
	n := &notes{sources: newSources(), options: o, began: time.Now()}
	n.sources.add(snippetName, p, code)
	most := utf8.UTFMax * (o.MaxLogLength + 1)
	n.stdout = &lineSplitter{most: most, line: func(b []byte) { n.add(LogStdout, string(b)) }}
	n.stderr = &lineSplitter{most: most, line: func(b []byte) { n.add(LogStderr, string(b)) }}
	return n
}

func (n *notes) log(level wire.Level, text string) { n.add(logLevels[level], text) }

// add takes a line, unless they are closed.
func (n *notes) add(level LogLevel, text string) (taken bool) {
	if n.feed != nil {
		n.feed.room()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.note(level, text)
	return true
}

// note adds a line, if there is room for one more.
//
// Preconditions: n.mu is held.
func (n *notes) note(level LogLevel, text string) {
	if len(n.logs) == n.options.MaxLogs {
		n.more = true
		return
	}
	text = n.sources.relocate(strings.ToValidUTF8(text, "\uFFFD"))
	l := Log{level, cut(text, n.options.MaxLogLength), time.Since(n.began)}
	n.logs = append(n.logs, l)
	if n.feed != nil {
		n.feed.log(l)
	}
	if n.options.OnLog != nil {
		n.options.OnLog(l)
	}
}

// close returns what there is. It takes no more.
func (n *notes) close() (logs []Log, more bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	return n.logs, n.more
}

// cut shortens a text to so many characters, and says so.
func cut(text string, most int) string {
	at := 0
	for range most {
		if at >= len(text) {
			return text
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	if at >= len(text) {
		return text
	}
	return text[:at] + "…"
}

// lineSplitter makes lines of a stream. Of a line it keeps the beginning.
type lineSplitter struct {
	most int
	line func([]byte)
	rest []byte
	open bool // there is an unfinished line, be it empty
}

func (l *lineSplitter) take(b []byte) {
	for {
		before, after, ended := bytes.Cut(b, []byte("\n"))
		l.rest = append(l.rest, before[:min(len(before), l.most-len(l.rest))]...)
		l.open = l.open || len(before) > 0
		if !ended {
			return
		}
		l.flush()
		b = after
	}
}

// flush ends a line.
func (l *lineSplitter) flush() {
	l.line(l.rest)
	l.rest, l.open = l.rest[:0], false
}

// end is for what the stream's last newline, if any, left.
func (l *lineSplitter) end() {
	if l.open {
		l.flush()
	}
}

// conclude makes the evaluation of its run's result.
func (n *notes) conclude(res *Result) *Evaluation {
	if n.stdout != nil {
		n.stdout.end() // the run has ended: nothing else writes to them
		n.stderr.end()
	}
	logs, more := n.close()
	e := &Evaluation{
		Result: res.Value, Calls: res.Calls, Duration: res.Duration, Cause: res.Cause, Usage: res.Usage, Denials: res.Denials,
		Logs: withoutLastWords(logs, res),
	}
	e.Truncated.Logs, e.Truncated.Calls, e.Truncated.Denials = more, res.Truncated.Calls, res.Truncated.Denials
	if e.Result == nil && res.told != nil {
		e.NoResult = cut(res.told.noValue, mostMessage)
	}
	e.Error = n.failure(res)
	return e
}

// lastWords begin what Node prints when it gives up: nothing that the snippet's author
// could use, as Evaluation.Error says it.
var lastWords = []struct {
	begin string
	by    func(*Result) bool
}{
	{"<--- Last few GCs --->", func(r *Result) bool { return r.Cause == CauseMemory }},
	{"Warning: Detected unsettled top-level await", func(r *Result) bool { return r.ExitCode == unsettledCode }},
}

func withoutLastWords(logs []Log, res *Result) []Log {
	for _, w := range lastWords {
		at := slices.IndexFunc(logs, func(l Log) bool { return l.Level == LogStderr && strings.HasPrefix(l.Text, w.begin) })
		if at < 0 || !w.by(res) {
			continue
		}
		for at > 0 && logs[at-1] == (Log{LogStderr, "", logs[at-1].At}) { // it begins with an empty line
			at--
		}
		return logs[:at]
	}
	return logs
}

// unsettledCode is Node's exit code for a top-level await that nothing settles.
const unsettledCode = 13

// failure says why the snippet failed. What the kernel or gaol ended is no matter of what the
// guest tells.
func (n *notes) failure(res *Result) *GuestError {
	o := n.options
	timeout := o.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	switch res.Cause {
	case CauseNone:
	case CauseTimeout:
		return &GuestError{Name: "TimeoutError", Message: fmt.Sprintf("the code took longer than %v", timeout)}
	case CauseMemory:
		message := "the code used up its memory"
		if res.Signal != "SIGKILL" { // V8 ended the process, not the kernel
			message += fmt.Sprintf(": %d MiB of heap", o.Heap>>20)
		}
		return &GuestError{Name: "OutOfMemoryError", Message: message}
	case CauseCanceled:
		return &GuestError{Name: "CanceledError", Message: "the code was stopped by its host"}
	case CauseSignal:
		return &GuestError{Name: "SignalError", Message: "the code was ended by " + res.Signal}
	case CausePids:
		if res.told == nil || res.told.failure == nil { // else what failed for it is more to the point
			return &GuestError{Name: "LimitError", Message: "the code started too many processes or threads"}
		}
	default:
		return &GuestError{Name: "LimitError", Message: fmt.Sprintf("the code used up its limit: %s", res.Cause)}
	}
	if res.told != nil && res.told.failure != nil {
		return newGuestError(res.told.failure, n.sources)
	}
	switch res.ExitCode {
	case 0:
		return nil
	case unsettledCode:
		return &GuestError{Name: "UnsettledError", Message: "the code awaits a promise that nothing settles"}
	}
	return &GuestError{Name: "ExitError", Message: fmt.Sprintf("the code ended its process with exit code %d", res.ExitCode)}
}
