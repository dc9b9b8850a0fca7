package stdio

import (
	"errors"
	"io"
)

// Sink consumes an output stream.
type Sink interface {
	// Buffer returns memory for the next read, of at least n bytes. It may block to apply
	// backpressure.
	Buffer(n int) []byte

	// Write consumes b, which is a part of the last Buffer.
	Write(b []byte)

	// Flush is called at the end of the stream, and when Reader.Flush has been served.
	Flush(ended bool)
}

// Pump copies a stream to a sink until the stream's end. It reads larger pieces once a read
// has filled its buffer.
func Pump(from io.Reader, to Sink) {
	size := pipeSize
	for {
		buf := to.Buffer(size)
		n, err := from.Read(buf)
		if n > 0 {
			to.Write(buf[:n])
		}
		switch {
		case errors.Is(err, errFlushed):
			to.Flush(false)
			from.(*Reader).endFlush()
		case err != nil:
			to.Flush(true)
			return
		}
		if n == len(buf) {
			size = max(len(buf), largeRead)
		}
	}
}
