package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	a, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// request returns a request for a key, which asks for an authority's certificate with other names.
func request(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	constraints, err := asn1.Marshal(struct{ IsCA bool }{true})
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "evilevil", Organization: []string{"other"}}, DNSNames: []string{"evilevil", "example.com"},
		IPAddresses: []net.IP{{127, 0, 0, 1}}, EmailAddresses: []string{"a@example.com"}, URIs: []*url.URL{{Scheme: "spiffe", Host: "other"}},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: constraints}},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func newKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A certificate has nothing of its request but the key.
func TestSign(t *testing.T) {
	a, key, id := newAuthority(t), newKey(t, elliptic.P256()), NewID()
	before := time.Now()
	c, err := a.Sign(request(t, key), id)
	if err != nil {
		t.Fatal(err)
	}
	if !key.PublicKey.Equal(c.PublicKey) {
		t.Error("the certificate has another key")
	}
	if c.Subject.String() != "CN="+id || !slices.Equal(c.DNSNames, []string{id}) ||
		c.IPAddresses != nil || c.EmailAddresses != nil || c.URIs != nil {
		t.Errorf("names %s, %v, %v, %v, %v", c.Subject, c.DNSNames, c.IPAddresses, c.EmailAddresses, c.URIs)
	}
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if c.IsCA || c.KeyUsage != x509.KeyUsageDigitalSignature || !slices.Equal(c.ExtKeyUsage, usages) {
		t.Errorf("authority: %v, usage %v, %v", c.IsCA, c.KeyUsage, c.ExtKeyUsage)
	}
	if life := c.NotAfter.Sub(before); life < Lifetime-time.Second || life > Lifetime+time.Minute {
		t.Errorf("it is valid for %v", life)
	}
	if early := before.Sub(c.NotBefore); early < skew-time.Minute || early > skew+time.Second {
		t.Errorf("it is valid since %v", early)
	}
	if err := c.CheckSignatureFrom(a.Cert); err != nil {
		t.Error(err)
	}
	again, err := a.Sign(request(t, key), id)
	if err != nil || again.SerialNumber.Cmp(c.SerialNumber) == 0 {
		t.Errorf("the second serial number is %v, %v", again.SerialNumber, err)
	}
}

func TestSignRefuses(t *testing.T) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	good := request(t, newKey(t, elliptic.P256()))
	forged := slices.Clone(good)
	forged[len(forged)-1] ^= 1 // of the signature
	id := NewID()
	for name, tc := range map[string]struct {
		request []byte
		id      string
	}{
		"P-224": {request(t, newKey(t, elliptic.P224())), id}, "P-384": {request(t, newKey(t, elliptic.P384())), id},
		"Ed25519": {request(t, ed), id}, "RSA": {request(t, long), id}, "a forged signature": {forged, id},
		"nothing": {nil, id}, "half": {good[:len(good)/2], id}, "a certificate": {newAuthority(t).Cert.Raw, id},
		"no id": {good, ""}, "another id": {good, "gaol fleet"},
	} {
		if c, err := newAuthority(t).Sign(tc.request, tc.id); err == nil {
			t.Errorf("%s: signed as %s", name, c.Subject)
		}
	}
}

func TestAuthorityFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadAuthority(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	a := newAuthority(t)
	if err := a.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := newAuthority(t).Write(dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second authority: %v", err)
	}
	info, err := os.Stat(filepath.Join(dir, authorityFile))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	got, err := ReadAuthority(dir)
	if err != nil || !got.Cert.Equal(a.Cert) {
		t.Fatalf("read %v, %v", got, err)
	}
	if c, err := got.Sign(request(t, newKey(t, elliptic.P256())), NewID()); err != nil || c.CheckSignatureFrom(a.Cert) != nil {
		t.Errorf("a certificate of the authority that was read: %v", err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("files %v, %v", names, err)
	}
}

func TestParseAuthority(t *testing.T) {
	a := newAuthority(t)
	text, err := a.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseAuthority(text); err != nil || !got.Cert.Equal(a.Cert) {
		t.Errorf("%v, %v", got, err)
	}
	other, err := newAuthority(t).MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	cert := encode(a.Cert.Raw)
	dir := t.TempDir()
	newNode(t, a, dir)
	node, err := readFile(dir, nodeFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"nothing": nil, "half": text[:len(text)-50], "no key": cert, "another key": slices.Concat(cert, other[len(encode(a.Cert.Raw)):]),
		"a key first": slices.Concat(text[len(cert):], cert), "a node": node,
	} {
		if got, err := ParseAuthority(text); err == nil {
			t.Errorf("%s: parsed %s", name, got.Cert.Subject)
		}
	}
}
