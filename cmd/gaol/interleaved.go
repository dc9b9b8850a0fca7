package main

import (
	"sync"
	"unicode/utf8"

	"gaol/runtime"
)

// interleaved keeps what a program prints in the order in which it was read. Each stream is
// a pipe of its own: within a stream the order is exact, and across them it is that of the
// two readers, so that what was printed within a few milliseconds may change places.
type interleaved struct {
	mu    sync.Mutex
	texts []tapped
	taps  [2]*tap
}

// outputPiece is a part of one stream. Neighbors are of different streams.
type outputPiece struct {
	Stream string `json:"stream"` // stdout or stderr
	Text   string `json:"text"`
}

// tapped is an outputPiece that may grow.
type tapped struct {
	stream string
	text   []byte
}

// tap is one stream on its way into the pieces.
type tap struct {
	stream string
	left   int64  // bytes that are kept
	rest   []byte // the beginning of a character
}

func newInterleaved(limit size) *interleaved {
	return &interleaved{taps: [2]*tap{{stream: "stdout", left: int64(limit)}, {stream: "stderr", left: int64(limit)}}}
}

// attach makes o's run fill the texts.
func (n *interleaved) attach(o *runtime.RunOptions) {
	o.OnStdout = func(b []byte) { n.take(n.taps[0], b) }
	o.OnStderr = func(b []byte) { n.take(n.taps[1], b) }
}

func (n *interleaved) take(t *tap, b []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b = b[:min(int64(len(b)), t.left)]
	t.left -= int64(len(b))
	b = append(t.rest, b...)
	whole := wholeCharacters(b)
	t.rest = append([]byte{}, b[whole:]...)
	n.add(t.stream, b[:whole])
}

// add appends a text.
//
// Preconditions: n.mu is held.
func (n *interleaved) add(stream string, text []byte) {
	last := len(n.texts) - 1
	switch {
	case len(text) == 0:
	case last >= 0 && n.texts[last].stream == stream:
		n.texts[last].text = append(n.texts[last].text, text...)
	default:
		n.texts = append(n.texts, tapped{stream, append([]byte{}, text...)})
	}
}

// end returns the pieces. The run has ended.
func (n *interleaved) end() []outputPiece {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range n.taps {
		n.add(t.stream, t.rest)
		t.rest = nil
	}
	pieces := []outputPiece{} // a list, also when there are none
	for _, t := range n.texts {
		pieces = append(pieces, outputPiece{t.stream, string(t.text)})
	}
	return pieces
}

// wholeCharacters is how many bytes are before a character that is cut off at the end.
func wholeCharacters(b []byte) int {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}
