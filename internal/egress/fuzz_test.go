package egress

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"gaol/policy"
)

// Whatever net/http accepts as a request is checked as one.
func FuzzRecognize(f *testing.F) {
	for _, r := range requests {
		f.Add([]byte(r.text))
	}
	f.Add([]byte("\x16\x03\x01\x00\x05hello"))
	f.Add([]byte("\x80\x2e\x01\x03\x03"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
		if p := recognize(b); err == nil && p != http1 {
			t.Errorf("%q: protocol %d", b, p)
		}
		for n, r := 0, newRecognizer(); n < len(b); n++ { // more bytes never change a clear result
			p := r.next(b[:n])
			if p != recognize(b[:n]) || p != unclear && p != recognize(b) {
				t.Errorf("%q: protocol %d after %d bytes, %d at the end", b, p, n, recognize(b))
			}
			if p != unclear {
				break
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

// A message, however odd, gets an answer that can be packed, and no look-up that the rules
// deny.
func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"a.test.", "localhost.", "1.0.18.198.in-addr.arpa.", "\\000.test."} {
		b, err := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		q := new(dns.Msg)
		if q.Unpack(b) != nil {
			return
		}
		client := NewClient(&policy.Egress{}, Limits{}, Observer{})
		s := NewServer(Config{
			Identify: func(string, netip.AddrPort, netip.AddrPort) *Client { return client },
			Resolver: &net.Resolver{PreferGo: true, Dial: nil},
		})
		defer s.Close()
		w := &replyWriter{}
		s.answer(w, q)
		if w.reply == nil || w.reply.Id != q.Id {
			t.Fatalf("no answer to %v", q)
		}
		if _, err := w.reply.Pack(); err != nil {
			t.Errorf("%v: %v", q, err)
		}
	})
}

type replyWriter struct {
	dns.ResponseWriter
	reply *dns.Msg
}

func (w *replyWriter) WriteMsg(m *dns.Msg) error { w.reply = m; return nil }
func (w *replyWriter) RemoteAddr() net.Addr      { return &net.UDPAddr{} }
func (w *replyWriter) LocalAddr() net.Addr       { return &net.UDPAddr{} }
