package snippets

import (
	"fmt"

	"gaol/runtime"
)

// Limits of Output.Logs.
const (
	MaxLogs     = 1000
	MaxLogBytes = 256 << 10 // of all lines together
)

// prefixes are what lines begin with.
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

// add adds a line. The last one says that further ones are left out.
func (l *logs) add(entry runtime.Log) {
	if l.cut {
		return
	}
	prefix := prefixes[entry.Level]
	if prefix == "" {
		prefix = "[log] "
	}
	line := prefix + l.position(entry.Text)
	left := MaxLogBytes - l.bytes
	l.cut = len(l.lines) == MaxLogs || len(line) > left
	if len(l.lines) < MaxLogs {
		l.append(cut(line, left))
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
