package report

import (
	"encoding/json"
	"sync"

	"gaol/internal/strictjson"
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
