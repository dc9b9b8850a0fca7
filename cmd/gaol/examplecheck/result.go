package examplecheck

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gaol/cmd/gaol/report"
	"gaol/internal/lazyregexp"
	"gaol/runtime/snippets"
)

// Status is the result of one example.
type Status string

// The results.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Result is what became of an example. It has JSON, as a report does.
type Result struct {
	*Example
	Status Status           `json:"status"`
	Reason string           `json:"reason,omitempty"` // why it is skipped
	Errors []Message        `json:"errors"`           // why it failed
	Diff   string           `json:"diff,omitempty"`   // of the expected output and this one, if they differ
	Output *snippets.Output `json:"output,omitempty"` // nil if it did not run
}

// Message is an error where a person can repair it.
type Message struct {
	File   string `json:"file"`
	Line   int    `json:"line"`             // from 1
	Column int    `json:"column,omitempty"` // from 1, in UTF-16 code units; 0 if not known
	Text   string `json:"message"`
}

// String returns the message after its position.
func (m Message) String() string { return m.place() + " — " + m.Text }

func (m Message) place() string {
	text := m.File + ":" + strconv.Itoa(m.Line)
	if m.Column > 0 {
		text += ":" + strconv.Itoa(m.Column)
	}
	return text
}

// Report is the result of a check.
type Report struct {
	Results    []*Result `json:"examples"`
	Passed     int       `json:"passed"`
	Failed     int       `json:"failed"`
	Skipped    int       `json:"skipped"`
	DurationMs int64     `json:"durationMs"`
}

// position matches a position in a file of a snippet.
var position = lazyregexp.New(`([\w./-]{1,128}):(\d{1,9}):(\d{1,9})`)

// Locate returns an error of an example with positions in the files that contain the example.
func Locate(e *Example, text string) string { return locate(e, text).Text }

// locate returns an error of an example with positions in the files that contain the example,
// and at the first of them.
func locate(e *Example, text string) Message {
	m := Message{File: e.File, Line: e.Line}
	found := false
	m.Text = position().ReplaceAllStringFunc(text, func(place string) string {
		parts := position().FindStringSubmatch(place)
		line, _ := strconv.Atoi(parts[2]) // digits
		column, _ := strconv.Atoi(parts[3])
		file, line, column, ok := e.Position(parts[1], line, column)
		if !ok {
			return place
		}
		at := Message{File: file, Line: line, Column: column}
		if !found {
			found, m.File, m.Line, m.Column = true, file, line, column
		}
		return at.place()
	})
	return m
}

// shownLogs is the number of an example's last lines in a report for people.
const shownLogs = 20

// TextOptions are the options of [Report.Text].
type TextOptions struct {
	Verbose bool // also list the examples that did not fail
	Colors  bool
}

// Text returns the report for people. It is free of control characters, except for line feeds,
// tabs and its own colors.
func (r *Report) Text(o TextOptions) string {
	var b strings.Builder
	for _, result := range r.Results {
		if result.Status == Failed || o.Verbose {
			result.write(&b, o)
		}
	}
	fmt.Fprintf(&b, "%d examples: %d passed, %d failed, %d skipped; %s\n",
		len(r.Results), r.Passed, r.Failed, r.Skipped, (time.Duration(r.DurationMs) * time.Millisecond).Round(10*time.Millisecond))
	return b.String()
}

// labels begin the line of an example, with a color.
var labels = map[Status]struct{ text, color string }{
	Passed: {"ok  ", "32"}, Failed: {"FAIL", "31"}, Skipped: {"skip", "33"},
}

func (r *Result) write(b *strings.Builder, o TextOptions) {
	label := labels[r.Status].text
	if o.Colors {
		label = "\x1b[" + labels[r.Status].color + "m" + label + "\x1b[0m"
	}
	fmt.Fprintf(b, "%s %s\n", label, report.Sanitize(r.title(), false))
	for _, m := range r.Errors {
		b.WriteString(indented(m.String()))
	}
	b.WriteString(indented(r.Diff))
	if r.Status == Failed && r.Output != nil && len(r.Output.Logs) > 0 {
		logs := r.Output.Logs
		b.WriteString("    its last lines:\n")
		b.WriteString(indented(strings.Join(logs[max(0, len(logs)-shownLogs):], "\n")))
	}
}

// title returns where an example is, its name, and why it is skipped.
func (r *Result) title() string {
	e := r.Example
	text := fmt.Sprintf("%s:%d", e.File, e.Line)
	if e.Name != "" {
		text += " " + e.Name
	}
	if r.Status == Skipped {
		text += ": " + e.Skip
	}
	return text
}

// indented returns untrusted text for a terminal, indented.
func indented(text string) string {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(report.Sanitize(text, false), "\n", "\n    ") + "\n"
}
