package fleet

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gaol/test/server/servertest"
	"gaol/test/tier"
)

// documented returns the code blocks of a section of docs/fleet.md.
func documented(t *testing.T, section string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	if !found {
		t.Fatalf("docs/fleet.md has no section %q", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	for i, part := range strings.Split(rest, "```") {
		if i%2 == 1 {
			_, block, _ := strings.Cut(part, "\n") // without the language
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// with returns the block that contains a text.
func with(t *testing.T, blocks []string, text string) string {
	t.Helper()
	at := slices.IndexFunc(blocks, func(block string) bool { return strings.Contains(block, text) })
	if at < 0 {
		t.Fatalf("no block contains %q", text)
	}
	return blocks[at]
}

// linesWith returns what follows a prefix in the lines of a block.
func linesWith(block, prefix string) (lines []string) {
	for line := range strings.Lines(block) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
			lines = append(lines, rest)
		}
	}
	return lines
}

// secure sends requests by TLS.
type secure struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (s secure) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme = "https"
	return s.next.RoundTrip(r)
}

// writeCertificate writes a certificate and its key, and returns the pool that trusts it.
func writeCertificate(t *testing.T, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	certificate, pool := servertest.Certificate(t)
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

// TestFleetUnits starts three nodes by the commands of the documented unit, and lets systemd verify it.
func TestFleetUnits(t *testing.T) {
	tier.Soak(t)
	t.Parallel()
	blocks := documented(t, "From one machine to three")
	dropIn := with(t, blocks, "[Service]")
	commands, flags := linesWith(dropIn, "ExecStart="), linesWith(with(t, blocks, "FLEET="), "FLEET=")
	if len(commands) != 2 || commands[0] != "" || len(flags) != 2 { // the empty one removes that of the unit
		t.Fatalf("commands %q, flags %q", commands, flags)
	}
	c := newCluster(t)
	path := func(name string) string { return filepath.Join(c.dir, name) }
	pool := writeCertificate(t, path("cert.pem"), path("key.pem"))
	replace := map[string]string{
		":8640": "127.0.0.1:0", "/etc/gaol/server.json": c.config(), "/etc/gaol/tokens": c.tokens,
		"/etc/gaol/cert.pem": path("cert.pem"), "/etc/gaol/key.pem": path("key.pem"), "@/etc/gaol/join-token": "@" + path("join-token"),
	}
	var callers []caller
	arguments := map[*node][]string{}
	for i, name := range []string{"a", "b", "c"} {
		n := c.prepare(t, name)
		words := strings.Fields(strings.ReplaceAll(commands[1], "$FLEET", flags[min(i, 1)]))
		if words[0] != "/usr/local/bin/gaol" {
			t.Fatalf("the unit starts %s", words[0])
		}
		for i, word := range words {
			if with, ok := replace[word]; ok {
				words[i] = with
			} else if strings.Contains(word, "/etc/") {
				t.Fatalf("the test does not know %s", word)
			}
		}
		arguments[n] = append(words[1:], "--socket", n.socket, "--store", n.store, "--fleet-address", "127.0.0.1:0", "--log-format", "json")
		n.run(t, n.gaolCommand(arguments[n]))
		n.waitServing(t)
		c.nodes = append(c.nodes, n)
		if i == 0 {
			replace["10.0.0.1:8641"] = n.peers
			if err := os.WriteFile(path("join-token"), []byte(n.token(t)+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		transport := &http.Transport{TLSClientConfig: strangerConfig()}
		transport.TLSClientConfig.InsecureSkipVerify, transport.TLSClientConfig.RootCAs = false, pool
		t.Cleanup(transport.CloseIdleConnections)
		callers = append(callers, caller{&http.Client{Transport: secure{&authorized{n, c.secrets[ada], transport}}}, t, n})
	}
	verifyUnit(t, c.nodes[0].gaol, dropIn)
	created := callers[0].create(nil)
	for _, by := range callers {
		by.n.waitState(t, c.nodes[2].id, "live")
		by.wantValue(created+"/run", "__return(1)", "1")
	}
	last := c.nodes[2]
	last.stop(t)
	last.run(t, last.gaolCommand(arguments[last])) // as after a restart of the machine
	last.waitServing(t)
	if last.ids[0] != last.id {
		t.Errorf("the node was %s, and is %s", last.ids[0], last.id)
	}
	last.waitState(t, c.nodes[0].id, "live")
	callers[2].wantValue(created+"/run", "__return(2)", "2")
}

// verifyUnit lets systemd verify the unit of gaol with a file that changes it.
func verifyUnit(t *testing.T, gaol, dropIn string) {
	t.Helper()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not installed")
		return
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "gaol.service.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"gaol.service.d/fleet.conf": strings.ReplaceAll(dropIn, "/usr/local/bin/gaol", gaol)} // which must exist
	for _, kind := range []string{"service", "socket"} {
		unit, err := exec.Command(gaol, "serve", "--print-unit="+kind).Output()
		if err != nil {
			t.Fatal(err)
		}
		files["gaol."+kind] = string(unit)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", filepath.Join(dir, "gaol.service")).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
