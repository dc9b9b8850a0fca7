package servertest

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gaol/cmd/gaol/server/tenant"
)

// Raw sends bytes on a new connection, and reads responses until the server closes it, or want of them
// have arrived.
func Raw(t testing.TB, c net.Conn, text string, want int) (list []*Response) {
	t.Helper()
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(c, text) }() // the server may close the connection before it has read all
	for r := bufio.NewReader(c); len(list) < want; {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			return list
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Errorf("%v after %d responses", err, len(list))
			return list
		}
		list = append(list, &Response{res.StatusCode, res.Header, body})
	}
	return list
}

// Token is a valid token of tenant NAME.
func Token(name string) string { return "0123456789abcdef0123456789abcdef-" + name }

// Tokens are tokens of tenants with these names.
func Tokens(t testing.TB, names ...string) *tenant.Tokens {
	t.Helper()
	tokens, err := tenant.ReadTokens(TokenFile(t, names...))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// TokenFile writes a file of tokens of tenants with these names.
func TokenFile(t testing.TB, names ...string) (path string) {
	t.Helper()
	var text []byte
	for _, name := range names {
		hash := sha256.Sum256([]byte(Token(name)))
		text = fmt.Appendf(text, "%s %s\n", name, hex.EncodeToString(hash[:]))
	}
	path = filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// DialTCP connects to the server's TCP port, with TLS if config is not nil.
func (s *Server) DialTCP(t testing.TB, config *tls.Config) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		c = tls.Client(c, config)
	}
	return c
}
