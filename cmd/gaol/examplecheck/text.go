package examplecheck

import (
	"fmt"
	"strings"
	"time"

	"gaol/cmd/gaol/report"
)

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
