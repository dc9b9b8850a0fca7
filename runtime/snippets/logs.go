package snippets

import (
	"cmp"
	"encoding/json"
	"fmt"

	"gaol/internal/snippet"
	"gaol/runtime"
	"gaol/runtime/snippets/bundle"
)

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
