package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"gaol/cmd/gaol/flags"
)

// Authority signs the certificates of the nodes of a fleet.
type Authority struct {
	Cert *x509.Certificate
	key  crypto.Signer
}

const (
	// Lifetime is how long the certificate of a node is valid.
	Lifetime = 24 * time.Hour

	// skew is by how much the clocks of two nodes may differ.
	skew = 5 * time.Minute

	authorityLifetime = 20 * 365 * 24 * time.Hour
)

// authorityFile contains the certificate and the key of an authority, and caFile the certificate of a node's fleet.
const (
	authorityFile = "authority.pem"
	caFile        = "ca.pem"
)

// NewAuthority returns a new authority.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "gaol fleet"}, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-skew), NotAfter: time.Now().Add(authorityLifetime),
	}
	cert, err := certify(template, template, key.Public(), key)
	return &Authority{cert, key}, err
}

// certify returns a certificate with a random serial number.
func certify(template, parent *x509.Certificate, public any, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// Sign returns the certificate of a node for the key of a request. It uses nothing else of the request.
func (a *Authority) Sign(request []byte, id string) (*x509.Certificate, error) {
	return a.sign(request, id, time.Now())
}

func (a *Authority) sign(request []byte, id string, now time.Time) (*x509.Certificate, error) {
	if !IsID(id) {
		return nil, fmt.Errorf("%q is not the id of a node", id)
	}
	r, err := x509.ParseCertificateRequest(request)
	if err == nil {
		err = r.CheckSignature()
	}
	if err != nil {
		return nil, err
	}
	if key, ok := r.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("want a key of the curve P-256")
	}
	return certify(&x509.Certificate{
		Subject: pkix.Name{CommonName: id}, DNSNames: []string{id}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   now.Add(-skew), NotAfter: now.Add(Lifetime),
	}, a.Cert, r.PublicKey, a.key)
}

// Fingerprint returns the SHA-256 of a certificate in hexadecimal.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// MarshalText returns the certificate and the key in PEM.
func (a *Authority) MarshalText() ([]byte, error) {
	key, err := x509.MarshalPKCS8PrivateKey(a.key)
	return append(encode(a.Cert.Raw), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...), err
}

// ParseAuthority is the inverse of MarshalText. It returns an error for a certificate that is not of an authority, or that has
// another key.
func ParseAuthority(text []byte) (*Authority, error) {
	cert, key, err := parsePair(text)
	if err != nil {
		return nil, err
	}
	if !cert.IsCA {
		return nil, errors.New("the certificate is not of an authority")
	}
	return &Authority{cert, key}, nil
}

// Write writes the authority to a folder, with mode 0600. It does not replace another one.
func (a *Authority) Write(dir string) error {
	text, err := a.MarshalText()
	if err != nil {
		return err
	}
	return writeFile(dir, authorityFile, text, os.Link)
}

// RemoveAuthority removes the authority from a folder, which may have none.
func RemoveAuthority(dir string) error {
	if err := os.Remove(filepath.Join(dir, authorityFile)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// ReadAuthority reads the authority of a folder. The error wraps [io/fs.ErrNotExist] if there is none.
func ReadAuthority(dir string) (*Authority, error) {
	text, err := readFile(dir, authorityFile)
	if err != nil {
		return nil, err
	}
	return ParseAuthority(text)
}

// maxFile bounds a file of this package in bytes.
const maxFile = 64 << 10

func readFile(dir, name string) ([]byte, error) {
	path := filepath.Join(dir, name)
	text, err := flags.ReadFile(path, maxFile, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}

// encode returns a certificate in PEM.
func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// parsePair parses a certificate and its key.
func parsePair(text []byte) (*x509.Certificate, crypto.Signer, error) {
	certBlock, rest := pem.Decode(text)
	keyBlock, _ := pem.Decode(rest)
	if certBlock == nil || keyBlock == nil {
		return nil, nil, errors.New("want a certificate and its key in PEM")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, nil, err
	}
	signer, ok := key.(*ecdsa.PrivateKey)
	if !ok || !signer.PublicKey.Equal(cert.PublicKey) {
		return nil, nil, errors.New("the key is not of the certificate")
	}
	return cert, signer, nil
}
