package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

// protocol is what the first bytes of a connection look like.
type protocol int

const (
	unclear protocol = iota // more bytes are needed
	opaque                  // neither of the others
	tlsHello
	http1
)

// maxHead bounds a ClientHello, and the line that begins HTTP/1. Hellos
// with post-quantum keys have 2 KB.
const maxHead = 64 << 10

// maxMethod bounds the first word of a request.
const maxMethod = 64

// recognize returns the protocol of a connection that starts with b. Servers accept more
// than the standards allow, such as empty lines before a request or a tab instead of a
// space. So everything that a lenient server could read as a request is http1.
func recognize(b []byte) protocol {
	b = bytes.TrimLeft(b, " \t\v\f\r\n")
	if len(b) == 0 {
		return unclear
	}
	if b[0] == 0x16 { // a handshake record: no text, no request
		return tlsHello
	}
	line, _, complete := bytes.Cut(b, []byte("\n"))
	method := bytes.IndexFunc(line, func(r rune) bool { return !isTokenRune(r) })
	switch {
	case method < 0 && len(line) > maxMethod, method == 0, method > maxMethod:
		return opaque
	case method < 0 && !complete:
		return unclear
	case method < 0, !isBlank(line[method]):
		return opaque
	case bytes.IndexFunc(line, func(r rune) bool { return r < ' ' && !isBlank(byte(r)) }) >= 0:
		return opaque
	case !complete && len(line) < maxHead:
		return unclear
	}
	rest := bytes.TrimSpace(line[method:])
	isRequest := !complete || bytes.Contains(bytes.ToUpper(rest), []byte("HTTP/")) ||
		bytes.HasPrefix(rest, []byte("/")) || bytes.Contains(rest, []byte("://"))
	if isRequest {
		return http1
	}
	return opaque
}

func isBlank(c byte) bool { return strings.IndexByte(" \t\v\f\r", c) >= 0 }

// isTokenRune reports whether a method may contain r, by RFC 9110.
func isTokenRune(r rune) bool {
	return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
}

// sniff reads from c until the protocol is clear. It returns what it has read, also with
// an error.
func sniff(c net.Conn) (head []byte, p protocol, err error) {
	buf := make([]byte, 0, 2<<10)
	for p == unclear {
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		var n int
		n, err = c.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if p = recognize(buf); err != nil {
			break
		}
	}
	if errors.Is(err, io.EOF) && p == unclear {
		return buf, opaque, nil // the guest has sent all that it will
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
	errNoHello   = errors.New("egress: no TLS ClientHello")
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
// in lower case and has no dot at its end.
func sameName(sent, name string) bool {
	return strings.EqualFold(strings.TrimSuffix(sent, "."), name)
}
