package relay

import (
	"bytes"
	"net"
	"strings"
	"testing"
)

// Bytes that a lenient server could read as HTTP or TLS are checked, and other protocols pass.
func TestRecognize(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       protocol
	}{
		{"a long method", strings.Repeat("M", 65) + " / HTTP/1.1\r\n", http1},
		{"blanks without an end", strings.Repeat("\r\n", maxHead/2), http1},
		{"a method without an end", strings.Repeat("M", maxHead), http1},
		{"a control character in the path", "GET /\x01", http1},
		{"a control character after a target", "GET http://x\x01", http1},
		{"a control character after the version", "GET x HTTP/1.1\x01", http1},
		{"a part of a request", "GET /a", unclear},
		{"a TLS warning", "\x15\x03\x01", tlsHello},
		{"TLS data", "\x17\x03\x01", tlsHello},
		{"a part of TLS data", "\x17", unclear},
		{"SSL 2", "\x80\x2e\x01\x03\x03", tlsHello},
		{"a part of SSL 2", "\x80\x2e\x01", unclear},

		{"LDAP", "0\x0c\x02\x01\x01`\x07\x02\x01\x03\x04\x00\x80\x00", opaque},
		{"git", "0032git-upload-pack /project.git\x00host=example.com\x00", opaque},
		{"MySQL", "\xb0\x00\x00\x01\x8d\xa6", opaque},
		{"PostgreSQL", "\x00\x00\x00\x08\x04\xd2\x16\x2f", opaque},
		{"MongoDB", "\x81\x01\x00\x00\x01\x00", opaque},
		{"Redis", "*1\r\n$4\r\nPING\r\n", opaque},
		{"Redis, inline", "SET key value\r\n", opaque},
		{"Minecraft", "\x14\x00\xff\x05", opaque},
		{"SSH", "SSH-2.0-OpenSSH_9.6 Debian\r\n", opaque},
		{"SMTP", "EHLO example.com\r\n", opaque},
		{"IMAP", "a1 LOGIN user password\r\n", opaque},
		{"Telnet", "\xff\xfb\x18", opaque},
		{"JSON", `{"id": 1, "url": "http://example.com/"}` + "\n", opaque},
	} {
		if got := recognize([]byte(tc.text)); got != tc.want {
			t.Errorf("%s: protocol %d, want %d", tc.name, got, tc.want)
		}
	}
}

// The last line of a guest that sends nothing more needs no end.
func TestSniffAtTheEnd(t *testing.T) {
	for text, want := range map[string]protocol{"GET / HTTP/1.1\rHost: evil.test\r\r": http1, "GET /": http1, "QUIT now": opaque, "QUIT": opaque, "": opaque, "\x80": opaque} {
		if head, p, err := sniff(&bytesConn{Reader: bytes.NewReader([]byte(text))}); err != nil || p != want || string(head) != text {
			t.Errorf("%q: protocol %d, %q, %v", text, p, head, err)
		}
	}
}

// The host reads a bounded amount of a guest's bytes that never get clear.
func TestSniffIsBounded(t *testing.T) {
	for _, text := range []string{"\n", "M", "GET /", "GET  "} {
		c := &endlessConn{text: text}
		head, p, err := sniff(c)
		if err != nil || p != http1 || len(head) > maxHead {
			t.Errorf("%q: protocol %d after %d bytes, %v", text, p, len(head), err)
		}
	}
}

// endlessConn sends a text and then its last byte again and again, one byte at a time.
type endlessConn struct {
	net.Conn
	text string
	n    int
}

func (c *endlessConn) Read(p []byte) (int, error) {
	p[0] = c.text[min(c.n, len(c.text)-1)]
	c.n++
	return 1, nil
}

// Names have cases in ASCII only.
func TestSameName(t *testing.T) {
	for sent, want := range map[string]bool{"site.test": true, "SITE.test.": true, "\u017fite.test": false} {
		if got := sameName(sent, "site.test"); got != want {
			t.Errorf("%q: %v", sent, got)
		}
	}
}
