package report

import (
	"encoding/json"
	"sync"

	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// Interleaved records both streams of a run in the order in which they were read.
// Within a stream the order is exact. Each stream is a pipe with a separate reader,
// so texts that were printed to different streams within a few milliseconds may
// change places.
type Interleaved struct {
	mu      sync.Mutex
	pieces  []Piece
	streams [2]recordedStream
}

type recordedStream struct {
	name      string
	remaining int64 // bytes that may still be recorded
	splitter  resultjson.Splitter
}

// NewInterleaved records at most limit bytes of each stream.
func NewInterleaved(limit int64) *Interleaved {
	return &Interleaved{streams: [2]recordedStream{{name: "stdout", remaining: limit}, {name: "stderr", remaining: limit}}}
}

// Attach makes n record the run with options o.
func (n *Interleaved) Attach(o *runtime.RunOptions) {
	o.OnStdout = func(b []byte) { n.record(&n.streams[0], b) }
	o.OnStderr = func(b []byte) { n.record(&n.streams[1], b) }
}

// record is called by the readers of both streams at the same time. A character that is cut at
// the end of b waits for its other bytes: JSON would have two U+FFFD instead of it.
func (n *Interleaved) record(s *recordedStream, b []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b = b[:min(int64(len(b)), s.remaining)]
	s.remaining -= int64(len(b))
	n.add(s.name, s.splitter.Split(b))
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
	pieces, err := Line(n.Pieces())
	return json.RawMessage(`{"output":` + pieces + "," + string(text[1:])), err
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
