package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"

	"gaol/internal/strictjson"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// Streams passes a run's output to gaol's own streams while the run lasts.
type Streams [2]stream // standard output and standard error

// stream is one of the two. The runtime calls write from one goroutine at a time,
// and the fields are read after the run.
type stream struct {
	name      string
	w         io.Writer
	limit     int64
	remaining int64 // bytes that may still be written
	truncated bool
	err       error
	cancel    context.CancelCauseFunc
}

// NewStreams passes at most limit bytes of each stream. If a write fails, it calls
// cancel with the error: the run is useless without a reader.
func NewStreams(stdout, stderr io.Writer, limit int64, cancel context.CancelCauseFunc) *Streams {
	return &Streams{
		{name: "standard output", w: stdout, limit: limit, remaining: limit, cancel: cancel},
		{name: "standard error", w: stderr, limit: limit, remaining: limit, cancel: cancel},
	}
}

// Attach makes the run with options o write to s.
func (s *Streams) Attach(o *runtime.RunOptions) { o.OnStdout, o.OnStderr = s[0].write, s[1].write }

// Log prints a line of an evaluation as it comes, unless it was written to standard error
// without console: it may be Node's message about an uncaught error, which is recognized
// only at the end.
func (s *Streams) Log(line runtime.Log) {
	switch line.Level {
	case runtime.LogStderr:
	case runtime.LogWarn, runtime.LogError:
		s[1].write([]byte(line.Text + "\n"))
	default:
		s[0].write([]byte(line.Text + "\n"))
	}
}

// write passes output on up to the limit. It drops the rest and lets the program continue, as
// with --json: output must not kill it.
func (s *stream) write(b []byte) {
	if s.err != nil {
		return
	}
	if int64(len(b)) > s.remaining {
		b, s.truncated = b[:s.remaining], true
	}
	s.remaining -= int64(len(b))
	if s.err = Write(s.w, s.name, b); s.err != nil {
		s.cancel(s.err)
	}
}

// Err returns the first failure to write. Call it after the run.
func (s *Streams) Err() error {
	return cmp.Or(s[0].err, s[1].err)
}

// Notes returns a line for each stream that the limit truncated.
func (s *Streams) Notes() (lines []string) {
	for _, s := range s {
		if s.truncated {
			lines = append(lines, fmt.Sprintf("%s was cut; allow more than --max-output %s", s.name, FormatSize(s.limit)))
		}
	}
	return lines
}

// Reader reads from r until ctx ends, even if a Read of r never returns.
func Reader(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() { // not waited for
		_, err := io.Copy(in, r)
		_ = in.CloseWithError(err) // always nil
	}()
	context.AfterFunc(ctx, func() { _ = in.CloseWithError(context.Cause(ctx)) })
	return out
}

// JSON writes v to standard output as one line. It encodes all of v first, so that
// a consumer sees an object or nothing.
func JSON(stdout io.Writer, v any) error {
	line, err := strictjson.Encode(v, "")
	if err != nil {
		return err
	}
	return Stdout(stdout, string(line))
}

// Table aligns the columns of lines whose cells are separated by tabs.
func Table(lines []string) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	_ = w.Flush() // strings.Builder never fails
	return text.String()
}

// Exit statuses that are not the guest's own. The first three are as in
// timeout(1) and docker run.
const (
	ExitTimeout = 124
	ExitFailure = 125
	ExitMemory  = 137
	ExitSignal  = 128 // plus the signal's number
)

// Status returns gaol's exit status for a run.
func Status(res *runtime.Result) int {
	switch res.Cause {
	case runtime.CauseTimeout:
		return ExitTimeout
	case runtime.CauseMemory:
		return ExitMemory
	}
	return res.ExitCode
}

// EvaluationStatus returns gaol's exit status for an evaluation. Snippets do not exit with a
// status: for an uncaught error it is 1, as in Node.
func EvaluationStatus(e *runtime.Evaluation) int {
	code := 0
	if e.Error != nil {
		code = 1
	}
	return Status(&runtime.Result{Cause: e.Cause, ExitCode: code})
}

// Interleaved records both streams of a run in the order in which they were read.
// Within a stream the order is exact. Each stream is a pipe with a separate reader,
// so texts that were printed to different streams within a few milliseconds may
// change places.
type Interleaved struct {
	mu      sync.Mutex
	pieces  []Piece
	streams [2]recordedStream
}

// recordedStream is a writer that records its input.
type recordedStream struct {
	to       *Interleaved
	name     string
	splitter resultjson.Splitter
}

// Streams returns streams that record at most limit bytes of each.
func (n *Interleaved) Streams(limit int64) *Streams {
	n.streams = [2]recordedStream{{to: n, name: "stdout"}, {to: n, name: "stderr"}}
	return NewStreams(&n.streams[0], &n.streams[1], limit, nil)
}

// Write is called by the readers of both streams at the same time. A character that is cut at
// the end of b waits for its other bytes: JSON would have two U+FFFD instead of it.
func (s *recordedStream) Write(b []byte) (int, error) {
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	s.to.add(s.name, s.splitter.Split(b))
	return len(b), nil
}

// add appends output.
//
// Preconditions: n.mu is held.
func (n *Interleaved) add(stream string, output []resultjson.Output) {
	for _, o := range output {
		if last := len(n.pieces) - 1; last < 0 || n.pieces[last].Stream != stream {
			n.pieces = append(n.pieces, Piece{Stream: stream})
		}
		text := &n.pieces[len(n.pieces)-1].Text
		*text = append(*text, o.Text...)
	}
}

// Piece is a part of one stream. Neighboring pieces are of different streams.
type Piece struct {
	Stream string `json:"stream"` // stdout or stderr
	Text   Text   `json:"text"`
}

// Text is bytes that JSON has as a string, not in base64: a string could not grow without
// a copy. Invalid UTF-8 becomes U+FFFD.
type Text []byte

// MarshalText implements [encoding.TextMarshaler].
func (t Text) MarshalText() ([]byte, error) { return t, nil }

// Object returns the JSON of a result with both streams in the order in which they were read.
func (n *Interleaved) Object(res *runtime.Result) (json.RawMessage, error) {
	text, err := res.MarshalJSON()
	if err != nil {
		return nil, err
	}
	pieces, err := strictjson.Encode(n.Pieces(), "")
	return json.RawMessage(`{"output":` + string(pieces) + "," + string(text[1:])), err
}

// Pieces returns the recorded pieces. Call it once, after the run.
func (n *Interleaved) Pieces() []Piece {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.streams {
		n.add(n.streams[i].name, n.streams[i].splitter.End())
	}
	return append([]Piece{}, n.pieces...) // a list even if empty
}
