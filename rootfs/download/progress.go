package download

import (
	"fmt"
	"io"
)

// Reporter writes the progress of a build or an import: a line for each slow step.
type Reporter struct{ w io.Writer }

// NewReporter returns a Reporter that writes to w. If w is nil, it discards everything.
func NewReporter(w io.Writer) *Reporter {
	if w == nil {
		w = io.Discard
	}
	return &Reporter{w}
}

// Line writes one line. It ignores errors: progress is not worth failing for.
func (r *Reporter) Line(format string, args ...any) {
	_, _ = fmt.Fprintf(r.w, format+"\n", args...)
}

// Fetch writes the line of a download of size bytes, at most 0 if unknown.
func (r *Reporter) Fetch(what string, size int64) {
	if size > 0 {
		what = fmt.Sprintf("%s (%.1f MB)", what, float64(size)/1e6)
	}
	r.Line("fetch %s", what)
}
