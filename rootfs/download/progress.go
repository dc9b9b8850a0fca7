package download

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Reporter writes the progress of a build or an import: a line for each slow step, and on a
// terminal a moving bar for each download.
type Reporter struct {
	w        io.Writer
	terminal bool
}

// NewReporter returns a Reporter that writes to w. If w is nil, it discards everything.
func NewReporter(w io.Writer) *Reporter {
	if w == nil {
		w = io.Discard
	}
	f, isFile := w.(*os.File)
	return &Reporter{w, isFile && term.IsTerminal(int(f.Fd()))}
}

// Line writes one line. It ignores errors: progress is not worth failing for.
func (r *Reporter) Line(format string, args ...any) {
	_, _ = fmt.Fprintf(r.w, format+"\n", args...)
}

// Bar shows how much of a download has arrived. Each byte written to it counts as arrived.
type Bar struct {
	report     *Reporter
	label      string
	size, done int64
	shown      time.Time
}

// barPause is the least time between two states of a bar.
const barPause = 100 * time.Millisecond

// clearLine moves a terminal's cursor to the start of its line, and clears it.
const clearLine = "\r\x1b[K"

// Bar starts a bar for a download of size bytes, -1 if unknown. Without a terminal it
// writes a single line.
func (r *Reporter) Bar(label string, size int64) *Bar {
	if !r.terminal {
		if size > 0 {
			label = fmt.Sprintf("%s (%.1f MB)", label, float64(size)/1e6)
		}
		r.Line("%s", label)
	}
	return &Bar{report: r, label: label, size: size}
}

// Add counts n more bytes. An error of the terminal does not fail a download.
func (b *Bar) Add(n int64) {
	b.done += n
	now := time.Now()
	if complete := b.done == b.size; !b.report.terminal || !complete && now.Sub(b.shown) < barPause {
		return
	}
	b.shown = now
	text := fmt.Sprintf("%s %.1f MB", b.label, float64(b.done)/1e6)
	if b.size > 0 && b.done <= b.size {
		text = fmt.Sprintf("%s %3d%% of %.1f MB", b.label, b.done*100/b.size, float64(b.size)/1e6)
	}
	_, _ = io.WriteString(b.report.w, clearLine+text)
}

// Write counts len(p) more bytes. It never fails.
func (b *Bar) Write(p []byte) (int, error) {
	b.Add(int64(len(p)))
	return len(p), nil
}

// Close replaces the bar by a line with its label.
func (b *Bar) Close() {
	if b.report.terminal {
		b.report.Line(clearLine+"%s", b.label)
	}
}
