package relay

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// Whatever net/http accepts as a request is checked as one.
func FuzzRecognize(f *testing.F) {
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\r\nGET / HTTP/1.1\r\n\r\n", "GET\t/ HTTP/1.0\n\n", "*1\r\n$4\r\nPING\r\n"} {
		f.Add([]byte(text))
	}
	f.Add([]byte("\x16\x03\x01\x00\x05hello"))
	f.Add([]byte("\x80\x2e\x01\x03\x03"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
		if p := recognize(b); err == nil && p != http1 {
			t.Errorf("%q: protocol %d", b, p)
		}
		for n := range b { // more bytes never change a clear result
			if p := recognize(b[:n]); p != unclear && p != recognize(b) {
				t.Errorf("%q: protocol %d after %d bytes, %d at the end", b, p, n, recognize(b))
			}
		}
	})
}

// readHello returns all that it has read, also of bytes that are no ClientHello.
func FuzzReadHello(f *testing.F) {
	f.Add([]byte("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &bytesConn{Reader: bytes.NewReader(b)}
		_, head, _ := readHello(c)
		rest, _ := io.ReadAll(c)
		if !bytes.Equal(append(head, rest...), b) {
			t.Errorf("%q: read %q, then %q", b, head, rest)
		}
	})
}

// bytesConn is a connection from which some bytes can be read.
type bytesConn struct {
	net.Conn
	*bytes.Reader
}

func (c *bytesConn) Read(p []byte) (int, error)      { return c.Reader.Read(p) }
func (c *bytesConn) Write(p []byte) (int, error)     { return len(p), nil }
func (c *bytesConn) Close() error                    { return nil }
func (c *bytesConn) SetDeadline(time.Time) error     { return nil }
func (c *bytesConn) SetReadDeadline(time.Time) error { return nil }

// A decoded message equals the encoded one, and no bytes make decode fail otherwise than by an error.
func FuzzMessage(f *testing.F) {
	m := Message{Kind: Ended, ID: 7, Outcome: Denied, Text: "host \"evil.test\""}
	f.Add(m.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decode(b); err == nil && !bytes.Equal(m.encode(), b) {
			again, err := decode(m.encode())
			if err != nil || again.ID != m.ID || again.From != m.From || again.To != m.To || again.Text != m.Text {
				t.Errorf("%x: %+v, then %+v, %v", b, m, again, err)
			}
		}
	})
}
