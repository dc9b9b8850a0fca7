package rootfs

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// reporter tells people how a build goes: a line for each thing that takes
// time, and on a terminal a bar for what comes over the network.
type reporter struct {
	w        io.Writer
	terminal bool
}

// newReporter reports to w; nil is nowhere.
func newReporter(w io.Writer) *reporter {
	if w == nil {
		w = io.Discard
	}
	f, isFile := w.(*os.File)
	return &reporter{w, isFile && term.IsTerminal(int(f.Fd()))}
}

// line writes one line. That nobody may be reading is no reason to fail.
func (r *reporter) line(format string, args ...any) {
	_, _ = fmt.Fprintf(r.w, format+"\n", args...)
}

// bar returns what counts the bytes of a transfer of size bytes, -1 if unknown.
func (r *reporter) bar(label string, size int64) io.WriteCloser {
	if !r.terminal {
		if size > 0 {
			label = fmt.Sprintf("%s (%.1f MB)", label, float64(size)/1e6)
		}
		r.line("%s", label)
		return quiet{io.Discard}
	}
	bar := progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(r.w),
		progressbar.OptionSetDescription(label),
		progressbar.OptionShowBytes(true),
		progressbar.OptionSetWidth(24),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0), // its goroutine would outlive a failed transfer
		progressbar.OptionUseANSICodes(true),
	)
	return &drawn{r, label, bar}
}

// quiet is the bar of one who has no terminal.
type quiet struct{ io.Writer }

func (quiet) Close() error { return nil }

// drawn is a bar on a terminal, of which a line stays in the end.
type drawn struct {
	r     *reporter
	label string
	bar   *progressbar.ProgressBar
}

// Write counts. A terminal that has gone away does not fail a transfer.
func (d *drawn) Write(p []byte) (int, error) {
	_ = d.bar.Add(len(p))
	return len(p), nil
}

func (d *drawn) Close() error {
	_ = d.bar.Clear()
	_ = d.bar.Exit()
	d.r.line("%s", d.label)
	return nil
}
