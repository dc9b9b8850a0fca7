package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gaol/internal/lazyregexp"
)

// Node is the identity of a node. It does not change.
type Node struct {
	ID string
	CA *x509.Certificate // of the fleet

	dir  string
	pair *tls.Certificate
}

// nodeFile contains the certificate and the key of a node.
const nodeFile = "node.pem"

var nodeID = lazyregexp.New(`^[a-z2-7]{8}$`)

// NewID returns an id of a node.
func NewID() string { return strings.ToLower(rand.Text()[:8]) }

// IsID reports whether text looks like the id of a node.
func IsID(text string) bool { return nodeID().MatchString(text) }

// Request is a key without a certificate so far.
type Request struct {
	DER []byte // the certificate request
	key *ecdsa.PrivateKey
}

// NewRequest returns a request for a new key.
func NewRequest() (*Request, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	return &Request{der, key}, err
}

// NewNode returns the identity for a request that the authority ca has signed, and writes it to a folder.
func NewNode(dir string, r *Request, cert []byte, ca *x509.Certificate) (*Node, error) {
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		return nil, err
	}
	if !r.key.PublicKey.Equal(parsed.PublicKey) {
		return nil, errors.New("the certificate is not of the requested key")
	}
	n := &Node{CA: ca, dir: dir}
	if err := n.use(parsed, r.key); err != nil {
		return nil, err
	}
	if err := n.write(r, cert); err != nil {
		return nil, err
	}
	return n, WriteFile(dir, caFile, encode(ca.Raw))
}

// write writes the node's certificate and key to its folder.
func (n *Node) write(r *Request, cert []byte) error {
	key, err := x509.MarshalPKCS8PrivateKey(r.key)
	if err != nil {
		return err
	}
	return WriteFile(n.dir, nodeFile, append(encode(cert), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...))
}

// use sets the certificate of a node, which must be of its authority.
func (n *Node) use(cert *x509.Certificate, key any) error {
	if err := n.verify(cert); err != nil {
		return err
	}
	n.ID = cert.Subject.CommonName
	n.pair = &tls.Certificate{Certificate: [][]byte{cert.Raw, n.CA.Raw}, PrivateKey: key, Leaf: cert}
	return nil
}

// verify checks that the fleet's authority has signed the certificate of a node, which has not expired.
func (n *Node) verify(cert *x509.Certificate) error {
	roots := x509.NewCertPool()
	roots.AddCert(n.CA)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return err
	}
	if !IsID(cert.Subject.CommonName) {
		return fmt.Errorf("%q is not the id of a node", cert.Subject.CommonName)
	}
	return nil
}

// ReadNode reads the identity in a folder. The error wraps [io/fs.ErrNotExist] if there is none, and is an
// [x509.CertificateInvalidError] if the certificate has expired.
func ReadNode(dir string) (*Node, error) {
	text, err := readFile(dir, nodeFile)
	if err != nil {
		return nil, err
	}
	caText, err := readFile(dir, caFile)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(caText)
	if block == nil {
		return nil, fmt.Errorf("%s: want a certificate in PEM", filepath.Join(dir, caFile))
	}
	n := &Node{dir: dir}
	if n.CA, err = x509.ParseCertificate(block.Bytes); err != nil {
		return nil, err
	}
	cert, key, err := parsePair(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, nodeFile), err)
	}
	return n, n.use(cert, key)
}

// Forget removes the certificate of a node from its folder: the fleet accepts it no longer.
func (n *Node) Forget() error { return os.Remove(filepath.Join(n.dir, nodeFile)) }

// RenewAt is when half of the certificate's life is over.
func (n *Node) RenewAt() time.Time {
	c := n.pair.Leaf
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 2)
}

// WriteFile replaces a file, with mode 0600.
func WriteFile(dir, name string, text []byte) error { return writeFile(dir, name, text, os.Rename) }

// writeFile writes a temporary file, and gives it its name by move when it is on the disk.
func writeFile(dir, name string, text []byte, move func(from, to string) error) error {
	f, err := os.CreateTemp(dir, name) // with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // unless it was renamed
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := move(f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close()) // else the name could be lost with the power
}
