package identity

import (
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"gaol/internal/lazyregexp"
)

// Server returns the TLS configuration of the node's listener. A client without a certificate can connect, because it may
// want to join; one with a certificate of another authority cannot. [Peer] distinguishes them.
func (n *Node) Server(protocols ...string) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(n.CA)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: roots, NextProtos: protocols,
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return n.pair, nil },
		SessionTicketsDisabled: true, // a resumed connection would not notice that a certificate has expired
	}
}

// Client returns the TLS configuration of connections to the node with an id or, if it is empty, to any node.
func (n *Node) Client(id string, protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return n.pair, nil },
		InsecureSkipVerify:   true, // VerifyConnection verifies by id instead of host name
		VerifyConnection: func(s tls.ConnectionState) error {
			if err := n.verify(s.PeerCertificates[0]); err != nil {
				return err
			}
			if peer := s.PeerCertificates[0].Subject.CommonName; id != "" && peer != id {
				return fmt.Errorf("the certificate is of node %s, not %s", peer, id)
			}
			return nil
		},
	}
}

// Peer returns the id of the node at the other end of a connection to [Node.Server], empty for other clients.
func Peer(s *tls.ConnectionState) string {
	if s == nil || len(s.VerifiedChains) == 0 || !IsID(s.PeerCertificates[0].Subject.CommonName) {
		return ""
	}
	return s.PeerCertificates[0].Subject.CommonName
}

// Token lets a machine join a fleet.
type Token struct {
	Secret string
	CA     string // the fingerprint of the authority
}

// NewToken returns a token with a new secret for the fleet of an authority.
func NewToken(ca *x509.Certificate) Token { return Token{rand.Text(), Fingerprint(ca)} }

var tokenForm = lazyregexp.New(`^([A-Z2-7]{26})\.([0-9a-f]{64})$`)

// String returns the token as a text without spaces.
func (t Token) String() string { return t.Secret + "." + t.CA }

// ParseToken is the inverse of String.
func ParseToken(text string) (Token, error) {
	m := tokenForm().FindStringSubmatch(text)
	if m == nil {
		return Token{}, errors.New("the join token is invalid: want one that gaol fleet token has printed")
	}
	return Token{m[1], m[2]}, nil
}

// Join returns the TLS configuration of a machine that joins, and the authority's certificate after the handshake. The
// machine is without a certificate so far, and knows the fleet's authority by the token.
func (t Token) Join() (_ *tls.Config, ca func() *x509.Certificate) {
	var authority *x509.Certificate
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, InsecureSkipVerify: true, // VerifyConnection verifies
		VerifyConnection: func(s tls.ConnectionState) error {
			last := s.PeerCertificates[len(s.PeerCertificates)-1]
			if subtle.ConstantTimeCompare([]byte(Fingerprint(last)), []byte(t.CA)) != 1 {
				return errors.New("the fleet's authority is not the one of the join token")
			}
			n := &Node{CA: last}
			if err := n.verify(s.PeerCertificates[0]); err != nil {
				return err
			}
			authority = last
			return nil
		},
	}, func() *x509.Certificate { return authority }
}
