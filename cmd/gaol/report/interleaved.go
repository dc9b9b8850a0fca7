package report

import (
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
	pieces  []resultjson.Piece
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
			n.pieces = append(n.pieces, resultjson.Piece{Stream: stream})
		}
		text := &n.pieces[len(n.pieces)-1].Text
		*text = append(*text, o.Text...)
	}
}

// Pieces returns the recorded pieces. Call it once, after the run.
func (n *Interleaved) Pieces() []resultjson.Piece {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.streams {
		n.add(n.streams[i].name, n.streams[i].splitter.End())
	}
	return append([]resultjson.Piece{}, n.pieces...) // a list even if empty
}
