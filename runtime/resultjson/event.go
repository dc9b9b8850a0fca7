package resultjson

import (
	"bytes"
	"time"
	"unicode/utf8"

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
		n := maxOutput - incomplete(b[:maxOutput])
		pieces = append(pieces, newOutput(b[:n]))
		b = b[n:]
	}
	n := len(b) - incomplete(b)
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

// incomplete returns how many bytes at the end of b begin a character that more bytes could
// complete.
func incomplete(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		tail := b[len(b)-n:]
		if utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// Connection is a TCP connection to an external host, which has ended or failed.
type Connection struct {
	Host       string  `json:"host"`    // the name that the guest has looked up; empty if it used an address
	Address    string  `json:"address"` // with the port
	Port       int     `json:"port"`
	Rule       string  `json:"rule"` // that allowed it
	BytesIn    int64   `json:"bytesIn"`
	BytesOut   int64   `json:"bytesOut"`
	DurationMs float64 `json:"durationMs"`
	Outcome    string  `json:"outcome" enum:"closed,refused,unreachable,timeout,failed"`
}

// NewConnection converts a connection.
func NewConnection(c runtime.Connection) Connection {
	o := Connection{c.Host, "", int(c.Port), c.Rule, c.BytesIn, c.BytesOut, Milliseconds(c.Duration), c.Outcome}
	if c.Address.IsValid() {
		o.Address = c.Address.String()
	}
	return o
}

// NewLog converts a line.
func NewLog(l runtime.Log) Log {
	return Log{l.Level, l.Text, Milliseconds(l.At.Round(time.Microsecond))}
}

// NewCall converts a call.
func NewCall(c runtime.Call) Call {
	return Call{c.Name, Milliseconds(c.Duration), c.Arguments, c.Result, c.Error}
}

// NewUsage converts the usage of a run so far.
func NewUsage(u runtime.Usage) Usage { return newUsage(u) }

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
