package server

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// times bound slow clients. There is no http.Server.ReadTimeout or WriteTimeout because requests may run
// for an hour, and read deadlines that expire meanwhile would cancel them.
type times struct {
	header time.Duration // of all headers of a request, from its first byte
	idle   time.Duration // between requests

	// body is the time in which a body must arrive. It gets a second longer with each bodyRate bytes:
	// bodies are bounded, and so is the time.
	body time.Duration

	write time.Duration // in which a client must accept writeChunk bytes
}

var defaultTimes = times{header: 10 * time.Second, idle: 2 * time.Minute, body: 30 * time.Second, write: time.Minute}

const (
	bodyRate   = 256 << 10
	writeChunk = 64 << 10
)

// timedBody is the body of a request, which must arrive before a deadline. The server also reads bodies that no
// handler has read, to find the next request.
type timedBody struct {
	io.ReadCloser
	conn     *http.ResponseController
	deadline time.Time
	received atomic.Int64
	over     bool // the deadline was removed
}

// limit sets the read deadline of a request with a body.
func (b *timedBody) limit(w http.ResponseWriter, r *http.Request, t time.Duration) {
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		return
	}
	b.ReadCloser, b.conn, b.deadline = r.Body, http.NewResponseController(w), time.Now().Add(t)
	b.set(b.deadline) // also if no handler reads it
	r.Body = b
}

func (b *timedBody) Read(p []byte) (n int, err error) {
	if b.over {
		return b.ReadCloser.Read(p)
	}
	b.set(b.deadline.Add(time.Duration(b.received.Load()/bodyRate) * time.Second))
	n, err = b.ReadCloser.Read(p)
	b.received.Add(int64(n))
	if err == io.EOF {
		b.over = true
		b.set(time.Time{}) // the server now waits for the client to close the connection
	}
	return n, err
}

func (b *timedBody) set(deadline time.Time) {
	_ = b.conn.SetReadDeadline(deadline) // fails if the connection is closed
}

// Write writes with a deadline for each part, so that a client that does not read its responses keeps
// no memory for long.
func (c *conn) Write(p []byte) (n int, err error) {
	for first := true; first || len(p) > 0; first = false {
		if err := c.SetWriteDeadline(time.Now().Add(c.writeTime)); err != nil {
			return n, err
		}
		written, err := c.Conn.Write(p[:min(len(p), writeChunk)])
		n += written
		if err != nil {
			return n, err
		}
		p = p[written:]
	}
	return n, nil
}
