package download

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
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
	report *Reporter
	label  string
	bar    *progressbar.ProgressBar // nil without a terminal
}

// Bar starts a bar for a download of size bytes, -1 if unknown. Without a terminal it
// writes a single line.
func (r *Reporter) Bar(label string, size int64) *Bar {
	if !r.terminal {
		if size > 0 {
			label = fmt.Sprintf("%s (%.1f MB)", label, float64(size)/1e6)
		}
		r.Line("%s", label)
		return &Bar{}
	}
	return &Bar{r, label, progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(r.w),
		progressbar.OptionSetDescription(label),
		progressbar.OptionShowBytes(true),
		progressbar.OptionSetWidth(24),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0), // its goroutine would outlive a failed download
		progressbar.OptionUseANSICodes(true),
	)}
}

// Add counts n more bytes. An error of the terminal does not fail a download.
func (b *Bar) Add(n int64) {
	if b.bar != nil {
		_ = b.bar.Add64(n)
	}
}

// Write counts len(p) more bytes. It never fails.
func (b *Bar) Write(p []byte) (int, error) {
	b.Add(int64(len(p)))
	return len(p), nil
}

// Close replaces the bar by a line with its label.
func (b *Bar) Close() {
	if b.bar == nil {
		return
	}
	_ = b.bar.Clear()
	_ = b.bar.Exit()
	b.report.Line("%s", b.label)
}
