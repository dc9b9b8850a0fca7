package runtime

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gaol/internal/snippet"
	"gaol/internal/wire"
	"gaol/runtime/internal/stdio"
)

// Log is a line that a snippet printed.
type Log struct {
	Level LogLevel      `json:"level"`
	Text  string        `json:"text"` // as Node prints it, without the final newline; it may contain newlines
	At    time.Duration `json:"ms"`   // since the beginning of the evaluation, by the host's clock
}

// LogLevel is the console method that printed a line.
type LogLevel string

// The levels. Each of console's methods counts as one of the first five. The last two are
// for output that does not pass through console, such as process.stdout.write or the output
// of a child process.
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

// logs collects the lines of an evaluation. It is safe for concurrent use.
type logs struct {
	sources *snippet.Sources
	options EvaluateOptions
	began   time.Time
	feed    *feed // nil unless the evaluation is followed
	ordered *ordered

	mu           sync.Mutex
	list         []Log
	more, closed bool
}

// ordered splits a program's standard streams into lines, in one order with console's lines. Only
// the goroutine that reads the control channel uses it.
type ordered struct {
	add    func(LogLevel, string)
	latest wire.Stream
	lines  map[wire.Stream]*stdio.Lines
}

// newOrdered returns a splitter. Of a line it keeps so many characters.
func newOrdered(characters int, add func(LogLevel, string)) *ordered {
	o := &ordered{add: add, latest: wire.Stdout, lines: map[wire.Stream]*stdio.Lines{}}
	for stream, level := range map[wire.Stream]LogLevel{wire.Stdout: LogStdout, wire.Stderr: LogStderr} {
		o.lines[stream] = stdio.NewLines(characters, func(line string) { add(level, line) })
	}
	return o
}

// begin ends an unfinished line of the other stream, which was written earlier.
func (o *ordered) begin(stream wire.Stream) *stdio.Lines {
	if stream != o.latest {
		o.lines[o.latest].Flush()
		o.latest = stream
	}
	return o.lines[stream]
}

// receive handles a frame of output or with a line of console, which continues an unfinished line.
func (o *ordered) receive(kind wire.Kind, body []byte) error {
	if kind == wire.KindOutput {
		stream, b, err := wire.ParseOutput(body)
		if err == nil {
			o.begin(stream).Write(b)
		}
		return err
	}
	level, text, err := wire.ParseLog(body)
	if err != nil {
		return err
	}
	stream := wire.Stdout
	if level >= wire.LevelWarn {
		stream = wire.Stderr
	}
	o.add(logLevels[level], o.begin(stream).Take()+text)
	return nil
}

// flush ends an unfinished line, and sets the maximum length of the lines that follow.
func (o *ordered) flush(characters int) {
	for _, l := range o.lines {
		l.Flush()
		l.SetMax(characters)
	}
}

// sink returns a sink for one of the output streams.
func (l *logs) sink(level LogLevel) *stdio.Lines {
	return stdio.NewLines(l.options.MaxLogLength, func(line string) { l.add(level, line) })
}

// add appends a line. It returns false if the logs are closed.
func (l *logs) add(level LogLevel, text string) bool {
	l.feed.WaitForRoom()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.append(level, text)
	return true
}

// append appends a line if there is room.
//
// Preconditions: l.mu is held.
func (l *logs) append(level LogLevel, text string) {
	if len(l.list) == l.options.MaxLogs {
		l.more = true
		return
	}
	text = l.sources.Log(strings.ToValidUTF8(text, "\uFFFD"))
	line := Log{level, truncate(text, l.options.MaxLogLength), time.Since(l.began)}
	l.list = append(l.list, line)
	if l.feed != nil {
		l.feed.Put(LogEvent{line}, stdio.EventWeight+len(line.Text))
	}
	if l.options.OnLog != nil {
		l.options.OnLog(line)
	}
}

// close returns the lines, and prevents further ones.
func (l *logs) close() (list []Log, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.list, l.more
}

// truncate shortens a text to a number of characters, and marks that with an ellipsis.
func truncate(text string, characters int) string {
	for at := range text {
		if characters == 0 {
			return text[:at] + "…"
		}
		characters--
	}
	return text
}

// conclude makes the evaluation of a run's result, and of what its guest reported.
func (l *logs) conclude(res *Result, cl *cell) *Evaluation {
	list, more := l.close()
	e := &Evaluation{
		Value: res.Value, Calls: res.Calls, Duration: res.Duration, Cause: res.Cause, Usage: res.Usage, Denials: res.Denials,
		Logs: withoutFatalReport(list, res),
	}
	e.Truncated.Logs, e.Truncated.Calls, e.Truncated.Denials = more, res.Truncated.Calls, res.Truncated.Denials
	if e.Value == nil {
		e.NoValue = truncate(cl.noValue, maxMessage)
	}
	if e.Error = l.failure(res, cl.failure); e.Error != nil {
		e.Error.Denied = e.Error.deniedBy(e.Denials)
	}
	return e
}

// fatalReports are the first lines of Node's reports before it aborts. They are removed, because
// Evaluation.Error reports the cause, and a snippet's author cannot use them.
var fatalReports = []struct {
	firstLine string
	applies   func(*Result) bool
}{
	{"<--- Last few GCs --->", func(r *Result) bool { return r.Cause == CauseMemory }},
	{"Warning: Detected unsettled top-level await", func(r *Result) bool { return r.ExitCode == unsettledCode }},
}

func withoutFatalReport(list []Log, res *Result) []Log {
	for _, report := range fatalReports {
		at := slices.IndexFunc(list, func(l Log) bool { return l.Level == LogStderr && strings.HasPrefix(l.Text, report.firstLine) })
		if at < 0 || !report.applies(res) {
			continue
		}
		for at > 0 && list[at-1] == (Log{LogStderr, "", list[at-1].At}) { // it begins with an empty line
			at--
		}
		return list[:at]
	}
	return list
}

// unsettledCode is Node's exit code for a top-level await that nothing settles.
const unsettledCode = 13

// failure returns why the snippet failed, or nil. If the kernel or gaol ended the run, the
// guest's report does not matter.
func (l *logs) failure(res *Result, reported *wire.Failure) *GuestError {
	o := l.options
	switch res.Cause {
	case CauseNone:
	case CauseTimeout:
		return &GuestError{Name: "TimeoutError", Message: fmt.Sprintf("the code took longer than %v", cmp.Or(o.Timeout, DefaultTimeout))}
	case CauseMemory:
		message := "the code exceeded its memory limit"
		if res.Signal != "SIGKILL" { // V8 aborted, the kernel did not kill
			message += fmt.Sprintf(": %d MiB of heap", o.Heap>>20)
		}
		return &GuestError{Name: "OutOfMemoryError", Message: message}
	case CauseCanceled:
		return &GuestError{Name: "CanceledError", Message: "the code was stopped by its host"}
	case CauseSignal:
		return &GuestError{Name: "SignalError", Message: "the code was ended by " + res.Signal}
	case CausePids:
		if reported == nil { // otherwise the error that followed is more precise
			return &GuestError{Name: "LimitError", Message: "the code started too many processes or threads"}
		}
	default:
		return &GuestError{Name: "LimitError", Message: fmt.Sprintf("the code exceeded its limit: %s", res.Cause)}
	}
	if reported != nil {
		return newGuestError(reported, l.sources)
	}
	switch res.ExitCode {
	case 0:
		return nil
	case unsettledCode:
		return &GuestError{Name: "UnsettledError", Message: "the code awaits a promise that nothing settles"}
	}
	return &GuestError{Name: "ExitError", Message: fmt.Sprintf("the code ended its process with exit code %d", res.ExitCode)}
}
