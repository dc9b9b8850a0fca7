package relay

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"gaol/internal/lazyregexp"
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

// maxReads bounds how often the first bytes are looked at, because a guest may send them one by one.
const maxReads = 1 << 10

// recognize returns the protocol of a connection that begins with b. Servers accept more than the
// standards allow, such as empty lines before a request or a tab instead of a space. So everything that a
// lenient server could read as a request is http1. More bytes never change a clear result.
func recognize(b []byte) protocol {
	p := recognizeStart(bytes.TrimLeft(b, blanks+"\n"))
	if p == unclear && len(b) >= maxHead {
		return http1
	}
	return p
}

func recognizeStart(b []byte) protocol {
	switch {
	case len(b) == 0:
		return unclear
	case b[0] == 0x15, b[0] == 0x16: // a record of TLS: a handshake, or a warning before it
		return tlsHello
	case b[0] == 0x14, b[0] == 0x17: // another record, unless no version follows
		return hello(b, 1, 3)
	case b[0] >= 0x80: // a ClientHello of version 3.x in the format of SSL 2, which OpenSSL accepts; it lacks a server name
		if p := hello(b, 2, 1); p != tlsHello {
			return p
		}
		return hello(b, 3, 3)
	case !isToken(rune(b[0])):
		return opaque
	}
	end := bytes.IndexFunc(b, func(r rune) bool { return !isToken(r) })
	switch {
	case end < 0:
		return unclear
	case strings.IndexByte(blanks, b[end]) < 0:
		return opaque
	}
	return recognizeTarget(b[end:])
}

// hello returns tlsHello if byte i of b has a value.
func hello(b []byte, i int, value byte) protocol {
	switch {
	case len(b) <= i:
		return unclear
	case b[i] != value:
		return opaque
	}
	return tlsHello
}

// recognizeTarget returns the protocol by the part after a method, and the end of the line.
func recognizeTarget(b []byte) protocol {
	end := slices.IndexFunc(b, func(c byte) bool { return c < ' ' && strings.IndexByte(blanks, c) < 0 })
	switch {
	case end < 0:
		return unclear
	case b[end] != 0 && isRequestLine(b[:end]): // HTTP has no NUL; the git protocol has one after a path
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

// blanks are the characters that a server may take for the end of a word.
const blanks = " \t\v\f\r"

// isToken reports whether a method may contain r, by RFC 9110.
func isToken(r rune) bool {
	return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
}

// sniff reads from c until the protocol is clear. It returns the bytes read, also with
// an error.
func sniff(c net.Conn) (head []byte, p protocol, err error) {
	for reads := 0; p == unclear && err == nil; reads++ {
		if reads == maxReads {
			return head, http1, nil // as which it is refused, unless it is a request
		}
		head = slices.Grow(head, 1<<10)
		var n int
		n, err = c.Read(head[len(head):min(cap(head), maxHead)])
		head = head[:len(head)+n]
		p = recognize(head)
	}
	if errors.Is(err, io.EOF) && p == unclear { // the guest has sent all that it will: the last line may have no end
		if p = recognize(append(bytes.Clone(head), '\n')); p == unclear {
			p = opaque
		}
	}
	if p != unclear {
		err = nil
	}
	return head, p, err
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

var errHelloSeen = errors.New("seen")

// readHello reads a TLS ClientHello with crypto/tls. It returns the server name, "" if the
// client sends none, and everything that it has read.
func readHello(c net.Conn) (serverName string, head []byte, err error) {
	var read bytes.Buffer
	seen := false
	recorded := &recordingConn{c, io.TeeReader(io.LimitReader(c, maxHead), &read)}
	err = tls.Server(recorded, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		serverName, seen = hello.ServerName, true
		return nil, errHelloSeen
	}}).Handshake()
	if !seen {
		return "", read.Bytes(), errors.Join(errors.New("relay: no TLS ClientHello"), err)
	}
	return serverName, read.Bytes(), nil
}

// recordingConn records all that is read, and writes nothing.
type recordingConn struct {
	net.Conn
	from io.Reader
}

func (c *recordingConn) Read(p []byte) (int, error) { return c.from.Read(p) }

func (c *recordingConn) Write(p []byte) (int, error) { return len(p), nil } // alerts

func (c *recordingConn) SetWriteDeadline(time.Time) error { return nil }

// sameName reports whether a protocol's name for the server is the one looked up, which is
// in lower case and without a trailing dot.
func sameName(sent, name string) bool { return policy.LowerName(strings.TrimSuffix(sent, ".")) == name }

// Protocols that are neither TLS nor HTTP name no host that is checked. So bytes pass as one of
// them only where no server takes them for a request:
//
//   - the server has sent something first, or has answered, and not by HTTP;
//   - they are known by their first bytes, which end a line before the server answers;
//   - they have no end of a line. Most binary protocols are among these.

// greetTimeout bounds how long a server takes to speak first if the guest has not waited for it, as
// clients of SSH and rsync do not.
const greetTimeout = 5 * time.Second

// redis is a command in RESP.
var redis = lazyregexp.New(`^\*[0-9]{1,4}\r\n\$[0-9]{1,4}\r\n`)

// isMongo recognizes the header of a message: a length, two ids of which the second is zero, and
// OP_MSG, OP_COMPRESSED or OP_QUERY.
func isMongo(b []byte) bool {
	if len(b) < 16 || !bytes.Equal(b[8:12], make([]byte, 4)) {
		return false
	}
	op := string(b[12:16])
	return op == "\xdd\x07\x00\x00" || op == "\xdc\x07\x00\x00" || op == "\xd4\x07\x00\x00"
}

// isMQTT recognizes CONNECT, after a length of one to four bytes.
func isMQTT(b []byte) bool {
	if len(b) == 0 || b[0] != 0x10 {
		return false
	}
	start := b[:min(len(b), 13)]
	return bytes.Contains(start, []byte("\x00\x04MQTT")) || bytes.Contains(start, []byte("\x00\x06MQIsdp"))
}

// isText reports whether bytes have the end of a line, or name a host as HTTP does: some servers
// end lines by other characters.
func isText(b []byte) bool {
	return bytes.ContainsAny(b, "\r\n") || bytes.Contains(bytes.ToLower(b), []byte("host:"))
}

// mayBeResponse reports whether the first bytes of a server may begin a response of HTTP. Some
// servers send one without a request when a time is over.
func mayBeResponse(b []byte) bool {
	start := []byte("HTTP/")
	n := min(len(b), len(start))
	return bytes.EqualFold(b[:n], start[:n])
}
