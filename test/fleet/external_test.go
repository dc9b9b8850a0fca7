package fleet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"gaol/test/harness"
)

const engineToken = "gaol-0123456789abcdef"

// natsCluster is three NATS servers with the configuration of deploy/kubernetes, on loopback addresses.
type natsCluster struct {
	dir     string
	servers []*exec.Cmd
	ports   []string
}

// writeEngineCertificate writes a certificate of 127.0.0.1 that is its own authority, as docs/kubernetes.md makes one.
func writeEngineCertificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gaol-engine"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{"tls.crt": cert, "ca.crt": cert, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// startNATS starts the servers, and waits until streams can be on three of them.
func startNATS(t *testing.T) *natsCluster {
	t.Helper()
	c := &natsCluster{dir: t.TempDir()}
	writeEngineCertificate(t, c.dir)
	var routes []string
	for range 3 {
		c.ports, routes = append(c.ports, freePort(t)), append(routes, freePort(t))
	}
	for i := range c.ports {
		c.start(t, i, routes)
	}
	c.waitReady(t)
	return c
}

// freePort returns a port that no program uses now.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// start starts one server.
func (c *natsCluster) start(t *testing.T, i int, routes []string) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/kubernetes/nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("gaol-engine-%d", i)
	pairs := []string{
		"port: 4222", "listen: 127.0.0.1:" + c.ports[i], "port: 6222", "listen: 127.0.0.1:" + routes[i], "http_port: 8222", "http: 127.0.0.1:-1",
		"/data", filepath.Join(c.dir, name), "/tls/", c.dir + "/",
	}
	for n, port := range routes {
		pairs = append(pairs, fmt.Sprintf("gaol-engine-%d.gaol-engine:6222", n), "127.0.0.1:"+port)
	}
	config := filepath.Join(c.dir, name+".conf")
	if err := os.WriteFile(config, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(c.dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	server := exec.Command(harness.NATS(t), "--config", config)
	server.Env = []string{"POD_NAME=" + name, "ENGINE_TOKEN=" + engineToken}
	server.Stderr = log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	release := killWithTests(t, server.Process.Pid)
	t.Cleanup(func() {
		_ = server.Process.Kill() // it may have ended
		_ = server.Wait()
		release()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("the log of %s:\n%s", name, text)
		}
	})
	c.servers = append(c.servers, server)
}

// urls returns the argument of --fleet-engine.
func (c *natsCluster) urls() string {
	var urls []string
	for _, port := range c.ports {
		urls = append(urls, "tls://"+engineToken+"@127.0.0.1:"+port)
	}
	return strings.Join(urls, ",")
}

// connect returns a client of any of the servers.
func (c *natsCluster) connect(t *testing.T) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(c.urls(), nats.RootCAs(filepath.Join(c.dir, "ca.crt")), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func (c *natsCluster) waitReady(t *testing.T) {
	t.Helper()
	js := c.connect(t)
	harness.WaitFor(t, "the NATS servers accept a stream", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // a request before there is a leader gets no response
		defer cancel()
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "READY", Replicas: 3})
		return err == nil
	})
}

// TestExternalEngine: servers with the same authority and NATS servers are a fleet, without joining each other.
func TestExternalEngine(t *testing.T) {
	t.Parallel()
	engine := startNATS(t)
	c := newCluster(t)
	// As in docs/kubernetes.md.
	authority := exec.Command("sh", "-ec", `umask 077; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
		-subj "/CN=gaol fleet" -addext keyUsage=critical,keyCertSign -keyout fleet.key -out fleet.crt; cat fleet.crt fleet.key >fleet.pem`)
	authority.Dir = c.dir
	if out, err := authority.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pem, urls := filepath.Join(c.dir, "fleet.pem"), filepath.Join(c.dir, "urls")
	if err := errors.Join(os.Chmod(pem, 0o440), os.WriteFile(urls, []byte(engine.urls()+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--fleet-engine", "@" + urls, "--fleet-engine-ca", filepath.Join(engine.dir, "ca.crt"), "--fleet-authority", pem}
	a, b := c.start(t, "a", flags...), c.start(t, "b", flags...)
	a.waitState(t, b.id, "live")
	b.waitState(t, a.id, "live")

	testExternalStreams(t, engine)
	testExternalRefusals(t, c, engine, flags)
	if out, err := a.gaolFleet("token"); err == nil || !strings.Contains(err.Error(), "start them with its --fleet-engine") {
		t.Errorf("gaol fleet token: %q %v", out, err)
	}

	path := b.as(t, ada).create(nil)
	b.as(t, ada).wantValue(path+"/run", "__return(require('fs').writeFileSync('kept', 'yes') ?? 1)", "1")
	if err := engine.servers[1].Process.Signal(unix.SIGKILL); err != nil { // one of three
		t.Fatal(err)
	}
	harness.WaitFor(t, "a batch run is accepted", func() bool {
		return a.as(t, ada).send("POST", "/v1/runs", sleeping("external", 0)).Status == 202
	})
	b.as(t, ada).result("external")
	a.as(t, ada).wantValue(path+"/run", "__return(1)", "1")

	b.manage(t, "drain", b.id)
	harness.WaitFor(t, "the sandbox moves", func() bool { return len(b.moves(idOf(path))) > 0 })
	id := b.id
	b.stop(t)
	a.waitState(t, id, "")
	a.as(t, ada).wantValue(path+"/run", "__return(require('fs').readFileSync('kept', 'utf8'))", `"yes"`)
	b.restart(t, flags...)
	if a.waitState(t, b.id, "live"); b.id != id {
		t.Errorf("the node was %s, and is %s", id, b.id)
	}
	b.as(t, ada).wantValue(path+"/run", "__return(1)", "1")

	// The machine is replaced, while its record exists.
	b.kill(t)
	if err := os.RemoveAll(filepath.Join(b.store, "fleet")); err != nil {
		t.Fatal(err)
	}
	b.restart(t, flags...)
	if a.waitState(t, b.id, "live"); b.id == id {
		t.Errorf("the new machine has the id of the old one")
	}
}

// testExternalStreams: each stream is on three servers.
func testExternalStreams(t *testing.T, engine *natsCluster) {
	js := engine.connect(t)
	for _, name := range []string{"KV_NODES", "KV_CONFIG", "KV_MOVED", "KV_RESULTS", "RUNS-0", "RUNS-15"} {
		harness.WaitFor(t, "stream "+name, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := js.Stream(ctx, name)
			return err == nil
		})
		if s, err := js.Stream(soon(t), name); err != nil || s.CachedInfo().Config.Replicas != 3 {
			t.Errorf("%s: %v, %+v", name, err, s)
		}
	}
}

// testExternalRefusals: errors name the flag or the setting that is wrong.
func testExternalRefusals(t *testing.T, c *cluster, engine *natsCluster, flags []string) {
	open := filepath.Join(c.dir, "open.pem")
	if err := errors.Join(os.WriteFile(open, []byte("x"), 0o600), os.Chmod(open, 0o644)); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"want a file with mode 0640 or less": {"--fleet-engine", "nats://127.0.0.1:1", "--fleet-authority", open},
		"need each other":                    {"--fleet-engine", "nats://127.0.0.1:1"},
		"excludes --fleet and --join":        append([]string{"--fleet"}, flags...),
	} {
		out, err := c.prepare(t, "refused-"+fmt.Sprint(len(want))).command(args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, want %q in %s", args, err, want, out)
		}
	}
	other := t.TempDir()
	writeEngineCertificate(t, other)
	for want, args := range map[string][]string{
		"certificate":             {"--fleet-engine", engine.urls(), "--fleet-engine-ca", filepath.Join(other, "ca.crt")},
		"Authorization Violation": {"--fleet-engine", strings.ReplaceAll(engine.urls(), engineToken, "wrong"), "--fleet-engine-ca", filepath.Join(engine.dir, "ca.crt")},
	} {
		n := c.prepare(t, "apart-"+fmt.Sprint(len(want)))
		n.start(t, append([]string{"--fleet-address", "127.0.0.1:0", "--fleet-authority", flags[5]}, args...)...)
		harness.WaitFor(t, "a warning with "+want, func() bool {
			for _, line := range n.log.with("prepare the fleet's engine") {
				if strings.Contains(line["err"], want) {
					return true
				}
			}
			return false
		})
		n.stop(t)
	}
}
