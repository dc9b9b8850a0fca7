package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestToken(t *testing.T) {
	a := newAuthority(t)
	token := NewToken(a.Cert)
	text := token.String()
	if got, err := ParseToken(text); err != nil || got != token {
		t.Errorf("%v, %v, want %v", got, err, token)
	}
	if NewToken(a.Cert).Secret == token.Secret {
		t.Error("two tokens have the same secret")
	}
	for name, damaged := range map[string]string{
		"empty": "", "no secret": "." + token.CA, "no CA": token.Secret + ".", "only a secret": token.Secret, "cut": text[:len(text)-1],
		"longer": text + "0", "a short secret": text[1:], "a space": " " + text, "a line": text + "\n", "lower case": strings.ToLower(text),
		"upper case": strings.ToUpper(text), "no hexadecimal": text[:len(text)-1] + "g", "two points": token.Secret + ".." + token.CA[1:],
		"other characters": "\x00" + text[1:], "another separator": token.Secret + "-" + token.CA,
	} {
		if got, err := ParseToken(damaged); err == nil {
			t.Errorf("%s: parsed %q as %v", name, damaged, got)
		}
	}
}

// connected is a connection as the server sees it.
type connected struct {
	peer string
	cert *x509.Certificate
	err  error
}

// serve accepts connections with a configuration, and echoes one byte on each.
func serve(t *testing.T, config *tls.Config) (address string, accepted <-chan connected) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	got := make(chan connected, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			got <- echo(c.(*tls.Conn))
		}
	}()
	return l.Addr().String(), got
}

func echo(c *tls.Conn) connected {
	defer c.Close()
	if err := c.Handshake(); err != nil {
		return connected{err: err}
	}
	var b [1]byte
	_, err := c.Read(b[:])
	if err == nil {
		_, err = c.Write(b[:])
	}
	s := c.ConnectionState()
	result := connected{peer: Peer(&s), err: err}
	if len(s.PeerCertificates) > 0 {
		result.cert = s.PeerCertificates[0]
	}
	return result
}

// dial connects and sends a byte: with TLS 1.3, a client learns that its certificate was refused from the reply.
func dial(address string, config *tls.Config) (tls.ConnectionState, error) {
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", address, config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer c.Close()
	_, err = c.Write([]byte("x"))
	if err == nil {
		_, err = io.ReadFull(c, make([]byte, 1))
	}
	return c.ConnectionState(), err
}

// A machine joins with a token, and then connects as a node.
func TestJoin(t *testing.T) {
	a := newAuthority(t)
	server := newNode(t, a, t.TempDir())
	address, accepted := serve(t, server.Server("http/1.1"))

	config, ca := NewToken(a.Cert).Join()
	if _, err := dial(address, config); err != nil {
		t.Fatal(err)
	}
	if c := <-accepted; c.peer != "" || c.cert != nil || c.err != nil {
		t.Errorf("without a certificate: %+v", c)
	}
	if !ca().Equal(a.Cert) {
		t.Fatalf("the authority is %v", ca())
	}
	r, cert := signed(t, a, NewID(), time.Now())
	n, err := NewNode(t.TempDir(), r, cert.Raw, ca())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", server.ID} {
		s, err := dial(address, n.Client(id, "http/1.1"))
		if err != nil || s.NegotiatedProtocol != "http/1.1" || s.Version != tls.VersionTLS13 {
			t.Errorf("as a node: %v, %v", s, err)
		}
		if c := <-accepted; c.peer != n.ID || c.err != nil {
			t.Errorf("as a node: %+v, want %s", c, n.ID)
		}
	}
	if _, err := dial(address, n.Client(NewID(), "http/1.1")); err == nil || !strings.Contains(err.Error(), "is of node "+server.ID) {
		t.Errorf("to another node at the address: %v", err)
	}
}

// A machine does not join a server whose authority is not that of the token.
func TestJoinRefuses(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	good := newNode(t, a, t.TempDir())
	// A server that sends the right authority, with a certificate of another one.
	forged := newNode(t, other, t.TempDir())
	pair := forged.pair
	forged.pair = &tls.Certificate{Certificate: [][]byte{pair.Certificate[0], a.Cert.Raw}, PrivateKey: pair.PrivateKey}
	old := newNode(t, a, t.TempDir())
	expire(t, a, old)
	for name, tc := range map[string]struct {
		server *Node
		of     *Authority
	}{"another hash": {good, other}, "another authority": {newNode(t, other, t.TempDir()), a}, "forged": {forged, a}, "expired": {old, a}} {
		address, _ := serve(t, tc.server.Server("http/1.1"))
		config, ca := NewToken(tc.of.Cert).Join()
		if _, err := dial(address, config); err == nil || ca() != nil {
			t.Errorf("%s: joined %v, %v", name, ca(), err)
		}
	}
}

// Server refuses clients with certificates that are not valid, instead of taking them for clients without any.
func TestServerRefuses(t *testing.T) {
	a := newAuthority(t)
	address, accepted := serve(t, newNode(t, a, t.TempDir()).Server())
	expired, foreign := newNode(t, a, t.TempDir()), newNode(t, newAuthority(t), t.TempDir())
	expire(t, a, expired)
	for name, client := range map[string]*Node{"expired": expired, "of another authority": foreign} {
		config := client.Client("")
		config.VerifyConnection = nil // the client accepts every server
		if _, err := dial(address, config); err == nil {
			t.Errorf("%s: connected", name)
		}
		if c := <-accepted; c.err == nil || c.peer != "" {
			t.Errorf("%s: accepted %+v", name, c)
		}
	}
	if _, err := dial(address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); err == nil {
		t.Error("TLS 1.2 was accepted")
	}
}

// Client refuses servers with certificates that are not valid.
func TestClientRefuses(t *testing.T) {
	a := newAuthority(t)
	client := newNode(t, a, t.TempDir())
	expired := newNode(t, a, t.TempDir())
	expire(t, a, expired)
	address, _ := serve(t, expired.Server())
	_, err := dial(address, client.Client(expired.ID))
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); !ok || invalid.Reason != x509.Expired {
		t.Errorf("expired: %v", err)
	}
	address, _ = serve(t, newNode(t, newAuthority(t), t.TempDir()).Server())
	if _, err := dial(address, client.Client("")); err == nil {
		t.Error("a server of another authority was accepted")
	}
}

func TestPeerWithoutTLS(t *testing.T) {
	if id := Peer(nil); id != "" {
		t.Errorf("peer %q", id)
	}
	// A certificate that was not verified does not count.
	cert := newNode(t, newAuthority(t), t.TempDir()).pair.Leaf
	if id := Peer(&tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}); id != "" {
		t.Errorf("peer %q", id)
	}
}
