package fleet

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/fleet/identity"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// testRefusedTokens: a machine with a bad token does not join, and its error says why.
func testRefusedTokens(t *testing.T, c *cluster) {
	valid, err := identity.ParseToken(c.nodes[0].token(t))
	if err != nil {
		t.Fatal(err)
	}
	otherFleet, err := identity.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	expired, err := identity.ParseToken(c.nodes[1].token(t))
	if err != nil {
		t.Fatal(err)
	}
	c.expire(t, expired)
	const unknown = "the join token is unknown or has expired"
	var tries sync.WaitGroup
	for name, tc := range map[string]struct{ by, token, want string }{
		"damaged":      {c.nodes[0].peers, valid.String()[1:], "the join token is invalid: want one that gaol fleet token has printed"},
		"other hash":   {c.nodes[0].peers, valid.Secret + "." + identity.Fingerprint(otherFleet.Cert), "the fleet's authority is not the one of the join token"},
		"other secret": {c.nodes[0].peers, identity.Token{Secret: rand.Text(), CA: valid.CA}.String(), unknown},
		"by a member":  {c.nodes[2].peers, identity.Token{Secret: rand.Text(), CA: valid.CA}.String(), unknown},
		"expired":      {c.nodes[0].peers, expired.String(), unknown},
	} {
		machine := c.prepare(t, name)
		tries.Go(func() {
			out, err := machine.command("--fleet-address", "127.0.0.1:0", "--join", tc.by, "--join-token", tc.token).CombinedOutput()
			if err == nil || !strings.Contains(string(out), tc.want) {
				t.Errorf("%s: %v, want %q:\n%s", name, err, tc.want, out)
			}
			if strings.Contains(string(out), valid.Secret) {
				t.Errorf("%s: the secret is in the log:\n%s", name, out)
			}
			if _, err := os.Stat(machine.certificate()); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: the machine has a certificate: %v", name, err)
			}
		})
	}
	tries.Wait()
	if n := len(c.nodes[0].states(t)); n != len(c.nodes) {
		t.Errorf("the fleet has %d nodes", n)
	}
}

// expire removes the secret of a token, as the engine does after a day.
func (c *cluster) expire(t *testing.T, token identity.Token) {
	t.Helper()
	sum := sha256.Sum256([]byte(token.Secret))
	key := "join." + hex.EncodeToString(sum[:])
	records := c.connect(t)
	if _, _, err := records.Get(t.Context(), engine.Config, key); err != nil {
		t.Fatal(err)
	}
	if err := records.Delete(t.Context(), engine.Config, key); err != nil {
		t.Fatal(err)
	}
}

// connect returns a client of the engine of the first node, past all of gaol's checks.
func (c *cluster) connect(t *testing.T) *engine.Client {
	t.Helper()
	dir := filepath.Join(c.nodes[0].store, "fleet")
	var state struct{ EngineToken string }
	var ports struct{ NATS []string }
	readJSON(t, filepath.Join(dir, "state.json"), &state)
	for _, path := range harness.Glob(filepath.Join(dir, "engine/*.ports")) {
		readJSON(t, path, &ports)
	}
	if len(ports.NATS) == 0 {
		t.Fatal("the engine has no address")
	}
	address, err := url.Parse(ports.NATS[0])
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address.Host)
	}
	client, err := engine.Connect(dial, engine.Access{Secret: state.EngineToken}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	harness.WaitFor(t, "the test has a connection to the engine", client.Connected)
	return client
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// testForeignClients: the listener for nodes gives nothing to clients that are not nodes of the fleet.
func testForeignClients(t *testing.T, c *cluster) {
	n := c.nodes[0]
	path := n.as(t, ada).create(nil)
	t.Run("plain TCP", func(t *testing.T) {
		conn, err := net.Dial("tcp", n.peers)
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range servertest.Raw(t, conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\nGaol-Fleet-Tenant: token:"+c.names[ada]+"\r\n\r\n", 1) {
			if res.Status != http.StatusBadRequest || strings.Contains(string(res.Body), "sb-") {
				t.Errorf("%d %s", res.Status, res.Body)
			}
		}
	})
	stranger, foreign := strangerConfig(), foreignConfig(t)
	t.Run("no certificate", func(t *testing.T) {
		for _, path := range []string{path, "/v1/sandboxes", "/fleet/v1/ping", "/fleet/v1/nodes", "/metrics"} {
			if status, err := get(t, n, stranger, path); err != nil || status != http.StatusForbidden {
				t.Errorf("%s: %d %v", path, status, err)
			}
		}
	})
	t.Run("certificate of another fleet", func(t *testing.T) {
		if status, err := get(t, n, foreign, path); err == nil {
			t.Errorf("status %d", status)
		}
	})
	for name, config := range map[string]*tls.Config{"no certificate": stranger, "certificate of another fleet": foreign} {
		for _, protocol := range []string{"gaol-engine", "gaol-route"} {
			t.Run(protocol+", "+name, func(t *testing.T) {
				config := config.Clone()
				config.NextProtos = []string{protocol}
				conn, err := tls.Dial("tcp", n.peers, config)
				if err != nil {
					return
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				if text, err := io.ReadAll(conn); len(text) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%q %v", text, err)
				}
			})
		}
	}
	t.Run("forged tenant", func(t *testing.T) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://gaol"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Gaol-Fleet-Tenant", "token:"+c.names[ada])
		for _, n := range c.nodes {
			servertest.Do(t, n.as(t, bob).Client, r.Clone(t.Context())).Want(t, http.StatusNotFound)
		}
	})
}

// strangerConfig is the TLS configuration of a client without a certificate.
func strangerConfig() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13} //nolint:gosec // the client is the attacker
}

// foreignConfig is the TLS configuration of a node of another fleet.
func foreignConfig(t *testing.T) *tls.Config {
	t.Helper()
	authority, err := identity.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	request, err := identity.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := authority.Sign(request.DER, identity.NewID())
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := identity.NewNode(t.TempDir(), request, cert.Raw, authority.Cert)
	if err != nil {
		t.Fatal(err)
	}
	config := foreign.Client("")
	config.VerifyConnection = nil // it trusts any server
	config.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { return nil }
	return config
}

// get sends a request to a node's listener for nodes, and returns the status of its response.
func get(t *testing.T, n *node, config *tls.Config, path string) (status int, err error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config.Clone()}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+n.peers+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Gaol-Fleet-Tenant", "token:"+n.c.names[ada])
	res, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// testRestart: a node that was stopped in good order leaves the fleet, and comes back with the same id and without a token. Its
// former sandboxes are lost.
func testRestart(t *testing.T, c *cluster) {
	first, n := c.nodes[0], c.nodes[2]
	path := n.as(t, ada).create(nil)
	first.as(t, ada).want(http.StatusOK, "GET", path, nil)
	n.stop(t)
	first.waitState(t, n.id, "")
	first.as(t, ada).refused(http.StatusGone, "sandbox_lost", "GET", path, nil)
	n.restart(t, "--join", first.peers)
	if n.ids[0] != n.id {
		t.Errorf("the node was %s, and is %s", n.ids[0], n.id)
	}
	for _, viewer := range c.nodes {
		viewer.waitState(t, n.id, "live")
	}
	for _, viewer := range c.nodes {
		viewer.as(t, ada).refused(http.StatusGone, "sandbox_lost", "GET", path, nil)
	}
	c.nodes[1].as(t, ada).wantValue(n.as(t, ada).create(nil)+"/run", "__return(1)", "1")
}
