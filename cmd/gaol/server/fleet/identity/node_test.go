package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// newNode returns a node of an authority, with files in a folder.
func newNode(t *testing.T, a *Authority, dir string) *Node {
	t.Helper()
	r, err := NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := a.Sign(r.DER, NewID())
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNode(dir, r, cert.Raw, a.Cert)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// signed returns a new request of a node, and its certificate from a time on.
func signed(t *testing.T, a *Authority, id string, now time.Time) (*Request, *x509.Certificate) {
	t.Helper()
	r, err := NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := a.sign(r.DER, id, now)
	if err != nil {
		t.Fatal(err)
	}
	return r, cert
}

// expire gives a node a certificate that has expired, also in its folder.
func expire(t *testing.T, a *Authority, n *Node) {
	t.Helper()
	r, cert := signed(t, a, n.ID, time.Now().Add(-Lifetime-time.Second))
	if err := n.write(r, cert.Raw); err != nil {
		t.Fatal(err)
	}
	n.pair = &tls.Certificate{Certificate: [][]byte{cert.Raw, a.Cert.Raw}, PrivateKey: r.key, Leaf: cert}
}

func TestID(t *testing.T) {
	if a, b := NewID(), NewID(); a == b || !IsID(a) || !IsID(b) {
		t.Errorf("%s, %s", a, b)
	}
	for _, other := range []string{"", "abcdefg", "abcdefghi", "ABCDEFGH", "abcdefg1", "abcdef.h", "abcdefgh\n", "../../ab"} {
		if IsID(other) {
			t.Errorf("%q is an id", other)
		}
	}
}

func TestReadNode(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	if _, err := ReadNode(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without files: %v", err)
	}
	n := newNode(t, a, dir)
	got, err := ReadNode(dir)
	if err != nil || got.ID != n.ID || !got.CA.Equal(a.Cert) || !got.pair.Leaf.Equal(n.pair.Leaf) {
		t.Fatalf("%v, %v", got, err)
	}
	if info, err := os.Stat(filepath.Join(dir, nodeFile)); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	leaf := n.pair.Leaf
	if at := n.RenewAt(); at.Sub(leaf.NotBefore) != leaf.NotAfter.Sub(at) {
		t.Errorf("it is renewed at %v", at)
	}
	if err := n.Forget(); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadNode(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a forgotten node: %v", err)
	}
}

func TestReadNodeRefuses(t *testing.T) {
	a := newAuthority(t)
	for name, change := range map[string]func(dir string, n *Node) error{
		"another authority": func(dir string, _ *Node) error { return WriteFile(dir, caFile, encode(newAuthority(t).Cert.Raw)) },
		"no authority":      func(dir string, _ *Node) error { return os.Remove(filepath.Join(dir, caFile)) },
		"a damaged CA":      func(dir string, _ *Node) error { return WriteFile(dir, caFile, []byte("x")) },
		"a damaged node":    func(dir string, _ *Node) error { return WriteFile(dir, nodeFile, encode(a.Cert.Raw)) },
		"the CA as a node": func(dir string, _ *Node) error {
			text, err := a.MarshalText()
			return errors.Join(err, WriteFile(dir, nodeFile, text))
		},
		"a huge file": func(dir string, _ *Node) error { return WriteFile(dir, nodeFile, make([]byte, maxFile+1)) },
	} {
		dir := t.TempDir()
		n := newNode(t, a, dir)
		if err := change(dir, n); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadNode(dir); err == nil {
			t.Errorf("%s: was read", name)
		}
	}
}

func TestReadNodeExpired(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	n := newNode(t, a, dir)
	expire(t, a, n)
	_, err := ReadNode(dir)
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); !ok || invalid.Reason != x509.Expired {
		t.Errorf("expired: %v", err)
	}
}

func TestNewNodeRefuses(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	r, cert := signed(t, a, NewID(), time.Now())
	otherRequest, _ := signed(t, a, NewID(), time.Now())
	past, expired := signed(t, a, NewID(), time.Now().Add(-2*Lifetime))
	for name, tc := range map[string]struct {
		request *Request
		cert    []byte
		ca      *x509.Certificate
	}{
		"of another key": {otherRequest, cert.Raw, a.Cert}, "of another authority": {r, cert.Raw, newAuthority(t).Cert},
		"expired": {past, expired.Raw, a.Cert}, "damaged": {r, cert.Raw[1:], a.Cert},
	} {
		if _, err := NewNode(dir, tc.request, tc.cert, tc.ca); err == nil {
			t.Errorf("a certificate %s was used", name)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Errorf("files %v, %v", names, err)
	}
}
