package snippets

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gaol/internal/lazyregexp"
	"gaol/internal/snippet"
	"gaol/runtime"
	"gaol/runtime/snippets/bundle"
)

// newOutput returns the output of a snippet that has done nothing.
func newOutput() *Output {
	return &Output{Logs: []string{}, Facts: emptyObject, Derived: emptyObject, Errors: []string{}}
}

// outcome completes an output with the sandbox's evaluation of a run.
type outcome struct {
	out     *Output
	program program
	timeout time.Duration
}

func (o outcome) add(e *runtime.Evaluation) {
	out := o.out
	out.DurationMs = float64(e.Duration.Microseconds()) / 1000
	out.TimedOut = e.Cause == runtime.CauseTimeout
	out.Denials, out.Usage = e.Denials, e.Usage
	l := logs{lines: out.Logs, position: o.program.locate} // again: e.Logs is without what V8 prints before it aborts
	for _, entry := range e.Logs {
		l.add(entry)
	}
	out.Logs = l.lines
	if e.Error != nil {
		o.addError(e)
	}
	out.addReport(e.Value, o.program.locate)
}

// addError adds the reason why a run failed. Only Cause is certain: the guest chooses the names of errors.
func (o outcome) addError(e *runtime.Evaluation) {
	switch e.Cause {
	case runtime.CauseCanceled: // Run adds the error
	case runtime.CauseTimeout:
		o.out.addError(fmt.Sprintf("wall-clock budget of %dms elapsed", o.timeout.Milliseconds()))
	case runtime.CauseMemory:
		o.out.addError(fmt.Sprintf("out of memory: a snippet has %d MiB of heap, and %d MiB in all", heap>>20, memory>>20))
	default:
		o.out.addError(o.describe(e.Error))
		if frames, p := o.program.frames(e.Error.Stack, 1); len(frames) > 0 {
			p.Message = o.head(e.Error)
			o.out.Problems = append(o.out.Problems, p)
		}
	}
}

// ownErrors are the errors by which package runtime reports how a process ended.
var ownErrors = []string{"ExitError", "LimitError", "SignalError", "UnsettledError"}

// head returns an error's name, message and code.
func (o outcome) head(e *runtime.GuestError) string {
	if rest, ok := strings.CutPrefix(e.Message, "the code "); ok && e.Stack == "" && slices.Contains(ownErrors, e.Name) {
		return "the snippet " + rest
	}
	text := o.program.locate(strings.TrimPrefix(e.Name+": "+e.Message, ": "))
	if e.Code != "" {
		text += fmt.Sprintf(" [code: %s]", e.Code)
	}
	return text
}

// describe returns an error with the part of its stack that is in the snippet's files, and its
// causes, of which package runtime bounds the number.
func (o outcome) describe(e *runtime.GuestError) string {
	const maxFrames = 10
	var b strings.Builder
	b.WriteString(snippet.Shorten(o.head(e), maxErrorText/2))
	frames, _ := o.program.frames(e.Stack, maxFrames)
	for _, frame := range frames {
		b.WriteString("\n" + frame)
	}
	if e.Cause != nil {
		b.WriteString("\nCause: " + o.describe(e.Cause))
	}
	for _, inner := range e.Errors {
		b.WriteString("\nOne of its errors: " + o.describe(inner))
	}
	return b.String()
}

// Limits of the guest's report.
const (
	maxState  = 1 << 20 // bytes of facts and derived together
	maxReport = 4 << 20 // of its JSON, in which texts are escaped

	maxErrors    = 20
	maxErrorText = 8 << 10 // bytes of an error
)

// report is the report of harness.mjs. The guest can forge it.
type report struct {
	Facts   string   `json:"facts"`   // JSON
	Derived string   `json:"derived"` // JSON
	Errors  []string `json:"errors"`
}

var emptyObject = json.RawMessage("{}")

// addReport adds the guest's report to an output.
func (o *Output) addReport(text json.RawMessage, locate func(string) string) {
	var r report
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if text == nil || dec.Decode(&r) != nil {
		return
	}
	for _, e := range r.Errors {
		o.addError(locate(snippet.Shorten(e, maxErrorText)))
	}
	facts, ok := object(r.Facts)
	derived, derivedOK := object(r.Derived)
	if !ok || !derivedOK || len(facts)+len(derived) > maxState {
		o.addError("the state is not two objects of JSON, or is too large")
		return
	}
	o.Facts, o.Derived = facts, derived
}

// object returns the text of a JSON object in its compact form.
func object(text string) (json.RawMessage, bool) {
	var b bytes.Buffer
	if !strings.HasPrefix(text, "{") || !utf8.ValidString(text) || json.Compact(&b, []byte(text)) != nil {
		return nil, false
	}
	return b.Bytes(), true
}

// addProblem adds an error at a position.
func (o *Output) addProblem(p Problem) {
	if len(o.Errors) >= maxErrors {
		return
	}
	p.Message = snippet.Shorten(p.Message, maxErrorText)
	o.Problems = append(o.Problems, p)
	o.addError(p.String())
}

// addError adds an error, within the limits.
func (o *Output) addError(text string) {
	if len(o.Errors) >= maxErrors {
		return
	}
	o.Errors = append(o.Errors, snippet.Shorten(text, maxErrorText))
}

// program maps a position in the snippet's module to the snippet's files. Lines and columns are counted from 1.
type program func(line, column int) (path string, l, c int, ok bool)

// inMain matches positions in the module, as V8 prints them.
var inMain = lazyregexp.New(`(?:file://)?/workspace/src/main\.mjs(?::(\d{1,9}):(\d{1,9}))?`)

// ofGaol matches gaol's own paths, which mean nothing to the authors of snippets.
var ofGaol = lazyregexp.New(`(?:file://)?(?:/workspace/(?:snippet|\.adapter|\.exports)\.mjs|/usr/libexec/gaol/\w+\.cjs|` + packagesDir + `/[\w./-]+)(?::\d+)*`)

// foreignFrames matches lines of a stack trace without a position in the snippet's files.
var foreignFrames = lazyregexp.New(`(?m)\n {4}at (?:[^\n(]*\(|async )?(?:node:|(?:file://)?(?:/usr/libexec/gaol/|` + packagesDir + `/|/workspace/(?:snippet|\.adapter|\.exports)\.mjs))[^\n]*$`)

// original returns the position of a match of inMain in the snippet's files.
func (p program) original(found []string) (Problem, bool) {
	line, _ := strconv.Atoi(found[1]) // nine digits at most; 0 if there is none
	column, _ := strconv.Atoi(found[2])
	path, l, c, ok := p(line, column)
	return Problem{Path: path, Line: l, Column: c}, ok
}

// locate replaces positions in the module by positions in the snippet's files, and omits other lines
// of stack traces.
func (p program) locate(text string) string {
	if strings.Contains(text, "\n    at ") {
		text = foreignFrames().ReplaceAllString(text, "")
	}
	if !strings.Contains(text, "js") { // true of most texts
		return text
	}
	text = inMain().ReplaceAllStringFunc(text, func(found string) string {
		if at, ok := p.original(inMain().FindStringSubmatch(found)); ok {
			return fmt.Sprintf("%s:%d:%d", at.Path, at.Line, at.Column)
		}
		return EntryPath
	})
	return ofGaol().ReplaceAllString(text, "gaol")
}

// frames returns the lines of a stack trace with positions in the snippet's files, and the first position.
func (p program) frames(stack string, most int) (kept []string, first Problem) {
	for line := range strings.Lines(stack) {
		if len(kept) == most {
			break
		}
		found := inMain().FindStringSubmatch(line)
		if found == nil || !strings.HasPrefix(line, "    at ") {
			continue
		}
		if at, ok := p.original(found); ok {
			first = cmp.Or(first, at)
			kept = append(kept, strings.TrimRight(p.locate(line), "\n"))
		}
	}
	return kept, first
}

// Limits of Output.Logs.
const (
	MaxLogs     = 1000
	MaxLogBytes = 256 << 10 // of all lines together
)

// prefixes are the prefixes of lines, by level.
var prefixes = map[runtime.LogLevel]string{
	runtime.LogWarn: "[warn] ", runtime.LogError: "[error] ", runtime.LogStderr: "[error] ",
}

// logs collects lines. runtime calls add from one goroutine at a time.
type logs struct {
	lines []string
	bytes int
	cut   bool
	onLog func(string)

	position func(text string) string // replaces positions in a text
}

// add adds a line, or, once the limits are reached, a final warning that further output is left out.
func (l *logs) add(entry runtime.Log) {
	if l.cut {
		return
	}
	line := cmp.Or(prefixes[entry.Level], "[log] ") + l.position(entry.Text)
	left := MaxLogBytes - l.bytes
	l.cut = len(l.lines) == MaxLogs || len(line) > left
	if len(l.lines) < MaxLogs {
		l.append(snippet.Shorten(line, left))
	}
	if l.cut {
		l.append(fmt.Sprintf("[warn] further output is left out: the limit is %d lines and %d KiB", MaxLogs, MaxLogBytes>>10))
	}
}

func (l *logs) append(line string) {
	l.lines = append(l.lines, line)
	l.bytes += len(line)
	if l.onLog != nil {
		l.onLog(line)
	}
}

// Output is the result of a snippet. Its JSON has exactly the six fields with names.
type Output struct {
	Logs       []string        `json:"logs"`    // lines such as "[log] hello"
	Facts      json.RawMessage `json:"facts"`   // an object: the state
	Derived    json.RawMessage `json:"derived"` // an object: values computed from it
	Errors     []string        `json:"errors"`  // empty if the snippet works
	DurationMs float64         `json:"durationMs"`
	TimedOut   bool            `json:"timedOut"`

	// Problems are the errors that have a position in the snippet's files.
	Problems []Problem `json:"-"`

	Denials []runtime.Denial `json:"-"`
	Usage   runtime.Usage    `json:"-"`
}

// Problem is an error at a position.
type Problem = bundle.Problem
