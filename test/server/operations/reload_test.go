package operations

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gaol/cmd/gaol/server/daemon"
)

// secretOf is the token with a name.
func secretOf(name string) string { return strings.Repeat(name, 32) }

// tokenLine is the line of a token in the file of tokens.
func tokenLine(name string, admin bool) string {
	line := fmt.Sprintf("%s %x", name, sha256.Sum256([]byte(secretOf(name))))
	if admin {
		line += " admin"
	}
	return line + "\n"
}

// writeCertificate writes a new certificate with a serial number, and its key.
func writeCertificate(t testing.TB, cert, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})))
}

// tcp is a client of the TCP listener.
func (p *process) tcp() (c *http.Client, serial func() int64) {
	var seen int64
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, // the test compares the serial number
		VerifyConnection:   func(s tls.ConnectionState) error { seen = s.PeerCertificates[0].SerialNumber.Int64(); return nil },
	}}
	return &http.Client{Transport: transport, Timeout: hangTime}, func() int64 { return seen }
}

// A reload replaces tokens, settings, the certificate and the audit log, or nothing.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	f := daemon.Files{Config: dir + "/config", Tokens: dir + "/tokens", Cert: dir + "/cert", Key: dir + "/key"}
	audit := filepath.Join(dir, "audit")
	config := func(most int) string {
		return fmt.Sprintf(`{"auditLog": %q, "tenants": {"token:a": {"sandboxes": %d}}}`, audit, most)
	}
	writeFile(t, f.Config, config(1))
	writeFile(t, f.Tokens, tokenLine("a", false))
	writeCertificate(t, f.Cert, f.Key, 1)
	p := start(t, daemon.Options{Files: f, Listen: "127.0.0.1:0"})
	address := p.waitLog("msg", "serve")["address"].(string)
	client, serial := p.tcp()
	status := func(token string) int {
		return request(client, "GET", "https://"+address+"/v1/sandboxes", secretOf(token), nil).status
	}
	create := func() int {
		return request(client, "POST", "https://"+address+"/v1/sandboxes", secretOf("a"), map[string]any{}).status
	}
	reload := func(message string) {
		t.Helper()
		p.signal(syscall.SIGHUP)
		p.waitLog("msg", message)
	}
	expect := func(a, b int, wantSerial int64) {
		t.Helper()
		if gotA, gotB := status("a"), status("b"); gotA != a || gotB != b || serial() != wantSerial {
			t.Errorf("the tokens get %d and %d, the certificate is %d; want %d, %d, %d", gotA, gotB, serial(), a, b, wantSerial)
		}
	}
	expect(200, 401, 1)
	if one, two := create(), create(); one != 201 || two != 429 {
		t.Errorf("creating two sandboxes of one: %d, %d", one, two)
	}

	const failed = "reload: the old settings, tokens and certificates stay"
	for name, spoil := range map[string]func() (undo func()){
		"config": func() func() {
			writeFile(t, f.Config, `{"unknown": 1}`)
			return func() { writeFile(t, f.Config, config(1)) }
		},
		"tokens": func() func() {
			writeFile(t, f.Tokens, "b")
			return func() { writeFile(t, f.Tokens, tokenLine("a", false)) }
		},
		"certificate": func() func() { writeFile(t, f.Key, "b"); return func() { writeCertificate(t, f.Cert, f.Key, 1) } },
		"audit log": func() func() {
			writeFile(t, f.Config, `{"auditLog": "/nonexistent/log"}`)
			return func() { writeFile(t, f.Config, config(1)) }
		},
	} {
		undo := spoil()
		if name != "tokens" {
			writeFile(t, f.Tokens, tokenLine("b", false)) // valid, but not alone
		}
		reload(failed)
		expect(200, 401, 1)
		undo()
		writeFile(t, f.Tokens, tokenLine("a", false))
	}

	if err := os.Rename(audit, audit+".1"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, f.Tokens, tokenLine("a", false)+tokenLine("b", false))
	writeFile(t, f.Config, config(2))
	writeCertificate(t, f.Cert, f.Key, 2)
	reload("reload")
	expect(200, 200, 2)
	if one, two := create(), create(); one != 201 || two != 429 {
		t.Errorf("creating the second sandbox, and a third: %d, %d", one, two)
	}
	for path, want := range map[string]string{audit: "token:b", audit + ".1": "token:a"} {
		text, err := os.ReadFile(path)
		if info, _ := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(string(text), `"tenant":"`+want+`"`) {
			t.Errorf("%s: %v, mode %v, %s", path, err, info.Mode(), text)
		}
	}
	p.stop()
}
