package relay

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"gaol/policy"
)

// protocol is a connection's protocol, guessed from its first bytes.
type protocol int

const (
	unclear protocol = iota // more bytes are needed
	opaque                  // neither of the others
	tlsHello
	http1
)

// maxHead bounds a ClientHello, and the bytes that are read before the protocol is clear. Hellos with
// post-quantum keys have 2 KB.
const maxHead = 64 << 10

// recognizer recognizes the protocol of a connection by its first bytes. Servers accept
// more than the standards allow, such as empty lines before a request or a tab instead of
// a space. So everything that a lenient server could read as a request is http1. It looks
// at each byte once: a guest may send them one by one.
type recognizer struct {
	state  func(r *recognizer, c byte) protocol
	seen   []byte // all bytes so far
	method int    // where the first word of the line ends
}

func newRecognizer() *recognizer { return &recognizer{state: (*recognizer).start} }

// next returns the protocol of b, which begins with the bytes of the previous call.
func (r *recognizer) next(b []byte) protocol {
	for i := len(r.seen); i < len(b); i++ {
		r.seen = b[:i]
		if p := r.state(r, b[i]); p != unclear {
			return p
		}
	}
	if r.seen = b; len(b) >= maxHead {
		return http1
	}
	return unclear
}

// start skips blanks and empty lines.
func (r *recognizer) start(c byte) protocol {
	switch {
	case isBlank(c), c == '\n':
		return unclear
	case c == 0x15, c == 0x16: // a record of TLS: a handshake, or a warning before it
		return tlsHello
	case c == 0x14, c == 0x17: // another record, unless no version follows
		r.state = (*recognizer).version
	case c >= 0x80:
		first := len(r.seen)
		r.state = func(r *recognizer, c byte) protocol { return ssl2(len(r.seen)-first, c) }
	case isTokenRune(rune(c)):
		r.state = (*recognizer).word
	default:
		return opaque
	}
	return unclear
}

// version reads the byte after the type of a TLS record.
func (*recognizer) version(c byte) protocol {
	if c == 3 {
		return tlsHello
	}
	return opaque
}

// ssl2 recognizes byte i of a ClientHello in the format of SSL 2. OpenSSL accepts one for
// TLS. It lacks a server name.
func ssl2(i int, c byte) protocol {
	switch {
	case i == 2 && c != 1, i == 3 && c != 3: // a ClientHello, of version 3.x
		return opaque
	case i == 3:
		return tlsHello
	}
	return unclear
}

// word reads a method.
func (r *recognizer) word(c byte) protocol {
	switch {
	case isBlank(c):
		r.method, r.state = len(r.seen), (*recognizer).target
	case !isTokenRune(rune(c)):
		return opaque
	}
	return unclear
}

// target reads the part after a method.
func (r *recognizer) target(c byte) protocol {
	switch {
	case c == 0: // not in HTTP; the git protocol has one after a path
		return opaque
	case c >= ' ' || isBlank(c):
		return unclear
	case isRequestLine(r.seen[r.method:]):
		return http1
	}
	return opaque
}

// isRequestLine reports whether a server could read a line as that of a request. It gets
// what follows the method.
func isRequestLine(rest []byte) bool {
	rest = bytes.TrimSpace(rest)
	return bytes.HasPrefix(rest, []byte("/")) || bytes.Contains(rest, []byte("://")) || bytes.Contains(bytes.ToUpper(rest), []byte("HTTP/"))
}

// recognizeLine recognizes the protocol of a last line, which may have no end.
func recognizeLine(b []byte) protocol { return newRecognizer().next(append(b, '\n')) }

func isBlank(c byte) bool { return strings.IndexByte(" \t\v\f\r", c) >= 0 }

// isTokenRune reports whether a method may contain r, by RFC 9110.
func isTokenRune(r rune) bool {
	return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
}

// sniff reads from c until the protocol is clear. It returns the bytes read, also with
// an error.
func sniff(c net.Conn) (head []byte, p protocol, err error) {
	buf := make([]byte, 0, 2<<10)
	for r := newRecognizer(); p == unclear; {
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		var n int
		n, err = c.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if p = r.next(buf); err != nil {
			break
		}
	}
	if errors.Is(err, io.EOF) && p == unclear { // the guest has sent all that it will
		if p = recognizeLine(buf); p == unclear {
			p = opaque
		}
	}
	if p != unclear {
		err = nil
	}
	return buf, p, err
}

// prefixConn is a connection of which the first bytes have been read.
type prefixConn struct {
	net.Conn
	head []byte
}

func (c *prefixConn) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

func (c *prefixConn) CloseWrite() error { return closeWrite(c.Conn) }

var (
	errHelloSeen = errors.New("seen")
	errNoHello   = errors.New("relay: no TLS ClientHello")
)

// readHello reads a TLS ClientHello with crypto/tls. It returns the server name, "" if the
// client sends none, and everything that it has read.
func readHello(c net.Conn) (serverName string, head []byte, err error) {
	recorded := &recordingConn{Conn: c}
	seen := false
	err = tls.Server(recorded, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		serverName, seen = hello.ServerName, true
		return nil, errHelloSeen
	}}).Handshake()
	if !seen {
		return "", recorded.read.Bytes(), errors.Join(errNoHello, err)
	}
	return serverName, recorded.read.Bytes(), nil
}

// recordingConn records all that is read, and writes nothing.
type recordingConn struct {
	net.Conn
	read bytes.Buffer
}

func (c *recordingConn) Read(p []byte) (int, error) {
	if c.read.Len() >= maxHead {
		return 0, errNoHello
	}
	n, err := c.Conn.Read(p[:min(len(p), maxHead-c.read.Len())])
	c.read.Write(p[:n])
	return n, err
}

func (c *recordingConn) Write(p []byte) (int, error) { return len(p), nil } // alerts

func (c *recordingConn) SetWriteDeadline(time.Time) error { return nil }

// sameName reports whether a protocol's name for the server is the one looked up, which is
// in lower case and without a trailing dot.
func sameName(sent, name string) bool { return policy.LowerName(strings.TrimSuffix(sent, ".")) == name }
