package runtime

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// valueReader takes in the frames that __return writes. What comes is the
// guest's: a frame that is too long, cut off or no JSON ends the reading, and
// what was returned before stays.
type valueReader struct {
	from  *pipeReader
	limit int64 // bytes of a value

	last json.RawMessage
}

func (v *valueReader) pump() {
	for {
		value, err := readValue(v.from, v.limit)
		if err != nil {
			break
		}
		v.last = value
	}
	// A program that goes on writing gets EPIPE, and costs the host nothing.
	v.from.file.Close()
}

var errFrame = errors.New("not a frame that the prelude writes")

// readValue reads one frame: u32 n, big-endian, and n bytes of JSON. io.EOF means
// that there is no further one.
func readValue(r io.Reader, limit int64) (json.RawMessage, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n == 0 || n > limit {
		return nil, errFrame
	}
	// Grown as the bytes come: the length is only what the guest says.
	var text bytes.Buffer
	if _, err := io.CopyN(&text, r, n); err != nil {
		return nil, err
	}
	if !utf8.Valid(text.Bytes()) || !json.Valid(text.Bytes()) {
		return nil, errFrame
	}
	return text.Bytes(), nil
}
