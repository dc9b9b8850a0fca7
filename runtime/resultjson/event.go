package resultjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"gaol/internal/strictjson"
	"gaol/runtime"
)

// Output is a piece of a program's output, as an event of a run has it.
type Output struct {
	// Text is the piece as text: invalid UTF-8 becomes U+FFFD. Then Bytes, which is absent
	// otherwise, has the bytes in base64.
	Text  string `json:"text"`
	Bytes []byte `json:"bytes,omitempty"`
}

// newOutput copies a piece of output.
func newOutput(b []byte) Output {
	o := Output{Text: string(b)}
	if !utf8.Valid(b) {
		o.Bytes = bytes.Clone(b)
	}
	return o
}

// maxOutput bounds the bytes of one Output.
const maxOutput = 32 << 10

// Splitter cuts one output stream into pieces that do not end inside a character, whatever the
// boundaries of its writes and reads are.
type Splitter struct {
	rest []byte // the beginning of a character
}

// Split returns the pieces of a part of the stream, of 32 KiB each at most. It keeps the beginning
// of a character at the end for the next call. It does not keep b.
func (s *Splitter) Split(b []byte) (pieces []Output) {
	if len(s.rest) > 0 {
		b = append(s.rest, b...)
		s.rest = nil
	}
	for len(b) > maxOutput {
		n := maxOutput - Incomplete(b[:maxOutput])
		pieces = append(pieces, newOutput(b[:n]))
		b = b[n:]
	}
	n := len(b) - Incomplete(b)
	s.rest = bytes.Clone(b[n:])
	if n > 0 {
		pieces = append(pieces, newOutput(b[:n]))
	}
	return pieces
}

// End returns the rest at the end of the stream: half a character, or nothing.
func (s *Splitter) End() (pieces []Output) {
	if len(s.rest) > 0 {
		pieces = []Output{newOutput(s.rest)}
	}
	s.rest = nil
	return pieces
}

// Incomplete returns how many bytes at the end of b begin a character that more bytes could
// complete.
func Incomplete(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// NewEvent returns the JSON of an event of a run other than its output and its end. The name is empty for others.
func NewEvent(e runtime.Event) (name string, data any) {
	switch e := e.(type) {
	case runtime.LogEvent:
		return "log", e.Log
	case runtime.CallEvent:
		return "call", e.Call
	case runtime.ConnectEvent:
		return "connect", e.Connection
	case runtime.DenialEvent:
		return "denial", e.Denial
	}
	return "", nil
}

// Event decodes an event of a run other than its output. It fails if this version does not know the event.
func Event(name string, data []byte) (runtime.Event, error) {
	switch name {
	case "log":
		return decode(data, func(l runtime.Log) runtime.Event { return runtime.LogEvent{Log: l} })
	case "call":
		return decode(data, func(c runtime.Call) runtime.Event { return runtime.CallEvent{Call: c} })
	case "connect":
		return decode(data, func(c runtime.Connection) runtime.Event { return runtime.ConnectEvent{Connection: c} })
	case "denial":
		return decode(data, func(d runtime.Denial) runtime.Event { return runtime.DenialEvent{Denial: d} })
	}
	return nil, fmt.Errorf("unknown event %q", name)
}

func decode[T any](data []byte, event func(T) runtime.Event) (runtime.Event, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return event(v), err
}

// Milliseconds keeps three decimals: the rest is noise.
func Milliseconds(d time.Duration) float64 { return strictjson.Milliseconds(d) }

// Bounds of a time that JSON can represent (RFC 3339).
var (
	firstTime = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// ClampTime returns the time in UTC that JSON can have: a guest can set the time of a file to any
// 64-bit number of seconds.
func ClampTime(t time.Time) time.Time {
	// Not by Before: it overflows.
	switch s := t.Unix(); {
	case s < firstTime.Unix():
		return firstTime
	case s > lastTime.Unix():
		return lastTime
	}
	return t.UTC()
}
