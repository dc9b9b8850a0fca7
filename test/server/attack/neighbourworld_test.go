package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sys/unix"

	protocol "gaol/internal/session"
	"gaol/test/harness"
	"gaol/test/internettest"
	"gaol/test/server/servertest"
)

// hangTime ends what hangs.
const hangTime = time.Minute

// quotaPause is how long an attacker that is refused waits, which is less than in the response.
const quotaPause = 50 * time.Millisecond

// fewFiles is the limit of the server's descriptors, LimitNOFILE of systemd.
const fewFiles = "4096"

// Addresses of the tests' internet, and its names.
var (
	unread     = netip.MustParseAddrPort("93.184.215.14:9000") // a server that does not read
	sending    = netip.MustParseAddrPort("93.184.215.14:9001") // a server that sends without end
	lenient    = netip.MustParseAddrPort("151.101.1.6:80")     // a server that takes anything for a request
	named      = "api.example.com"                             // resolves to the address of lenient
	silentZone = "silent.test"                                 // the name server does not reply about names in it
)

// world is a server in its own process with two tenants, and the internet that its guests reach.
type world struct {
	process  *os.Process
	log      *servertest.Log
	socket   string
	attacker *http.Client
	internet *internet

	neighbour *http.Client
	runs      int // of the neighbour

	// shared is a client with one connection for several tenants, such as that of a reverse proxy.
	shared *http.Client
}

// startWorld starts gaol serve, which ends with the test.
func startWorld(t *testing.T) *world {
	t.Helper()
	in := startInternet(t)
	dir := servertest.PublicDir(t)
	w := &world{log: &servertest.Log{}, socket: filepath.Join(dir, "s"), internet: in}
	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, []byte(`{"hosts":["gaol"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", `ulimit -n "$0" && exec "$@"`, fewFiles, harness.Gaol(t), "serve", "--no-playground", "--socket", w.socket,
		"--config", config, "--listen", "127.0.0.1:0", "--tokens", servertest.TokenFile(t, "mallory", "alice"))
	if store := os.Getenv(harness.StoreVar); store != "" {
		cmd.Args = append(cmd.Args, "--store", store)
	}
	w.process = w.start(t, cmd)
	if err := os.Chmod(w.socket, 0o666); err != nil {
		t.Fatal(err)
	}
	server := servertest.Server{Socket: w.socket}
	w.attacker, w.neighbour = server.Client(t, mallory), server.Client(t, alice)
	address := w.address(t)
	transport := &http.Transport{MaxConnsPerHost: 1, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	w.shared = &http.Client{Transport: transport}
	return w
}

// start starts a server, and stops it when the test ends.
func (w *world) start(t *testing.T, cmd *exec.Cmd) *os.Process {
	t.Helper()
	cmd.Stderr = w.log
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(unix.SIGTERM)
		select {
		case err := <-ended:
			if err != nil || t.Failed() {
				t.Errorf("the server: %v\n%.8000s", err, w.log)
			}
		case <-time.After(hangTime):
			t.Errorf("the server does not end\n%.8000s", w.log)
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	harness.WaitFor(t, "the server serves", func() bool { return strings.Count(w.log.String(), "msg=serve") == 2 })
	return cmd.Process
}

// address returns the address of TCP, which the server has logged.
func (w *world) address(t *testing.T) string {
	t.Helper()
	_, rest, found := strings.Cut(w.log.String(), "address=127.0.0.1:")
	if !found {
		t.Fatalf("no address in the log: %s", w.log)
	}
	return "127.0.0.1:" + strings.Fields(rest)[0]
}

// internet has servers that guests may connect to.
type internet struct {
	mu    sync.Mutex
	count int      // connections so far
	heard []string // what lenient got, by connection
}

func startInternet(t *testing.T) *internet {
	t.Helper()
	in := &internet{}
	internettest.ServeNames(t, map[string][]netip.Addr{named: {lenient.Addr()}}).Mute(silentZone)
	ctx := t.Context()
	internettest.Listen(t, unread.Addr(), unread.Port(), func(net.Conn) {
		in.add("")
		<-ctx.Done()
	})
	internettest.Listen(t, sending.Addr(), sending.Port(), func(c net.Conn) {
		in.add("")
		part := make([]byte, 64<<10)
		for {
			if _, err := c.Write(part); err != nil {
				return
			}
		}
	})
	internettest.Listen(t, lenient.Addr(), lenient.Port(), func(c net.Conn) {
		text, _ := io.ReadAll(io.LimitReader(c, 64<<10))
		in.add(string(text))
	})
	return in
}

// add counts a connection.
func (in *internet) add(text string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.count++
	if text != "" {
		in.heard = append(in.heard, text)
	}
}

func (in *internet) connections() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.count
}

// post sends JSON and reads the response.
func post(ctx context.Context, c *http.Client, path, body string, header ...string) (status int, reply []byte, err error) {
	return send(ctx, c, http.MethodPost, path, body, append([]string{"Content-Type", "application/json"}, header...)...)
}

func send(ctx context.Context, c *http.Client, method, path, body string, header ...string) (status int, reply []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://gaol"+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := c.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	reply, err = io.ReadAll(res.Body)
	return res.StatusCode, reply, err
}

// repeat calls f in n goroutines again and again until ctx ends.
func repeat(ctx context.Context, n int, f func()) {
	var workers sync.WaitGroup
	for range n {
		workers.Go(func() {
			for ctx.Err() == nil {
				f()
			}
		})
	}
	workers.Wait()
}

// guest runs a program of the attacker until ctx ends: again if its limit of memory or a quota has ended it.
func (w *world) guest(ctx context.Context, t *testing.T, path string, body map[string]any) {
	body["timeoutMs"] = 300_000
	text, err := json.Marshal(body)
	if err != nil {
		t.Error(err)
		return
	}
	for ctx.Err() == nil {
		status, reply, err := post(ctx, w.attacker, path, string(text))
		if err != nil || status == http.StatusTooManyRequests { // the server closes connections above a quota
			time.Sleep(quotaPause)
		} else if ctx.Err() == nil && !bytes.Contains(reply, []byte(`"cause":"memory"`)) {
			t.Errorf("a guest has ended: %d, %.2000s", status, reply)
			return
		}
	}
}

// box creates a sandbox of the attacker.
func (w *world) box(t *testing.T, fields map[string]any) (path string, remove func()) {
	t.Helper()
	res := servertest.Send(t, w.attacker, http.MethodPost, "/v1/sandboxes", fields)
	res.Want(t, http.StatusCreated)
	var created struct{ ID string }
	res.Into(t, &created)
	path = "/v1/sandboxes/" + created.ID
	return path, func() {
		status, reply, err := send(context.Background(), w.attacker, http.MethodDelete, path, "")
		if err != nil || status != http.StatusNoContent {
			t.Errorf("close %s: %d, %v, %s", path, status, err, reply)
		}
	}
}

// session opens a session of the attacker.
func (w *world) session(ctx context.Context) (*websocket.Conn, error) {
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return servertest.Dial(w.socket, mallory) }}
	c, _, err := websocket.Dial(ctx, "ws://gaol/v1/session", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, Subprotocols: []string{protocol.Protocol},
	})
	if err == nil {
		c.SetReadLimit(protocol.MaxFrame)
	}
	return c, err
}

// network returns permissions with rules that allow patterns.
func network(patterns ...string) map[string]any {
	return map[string]any{"network": map[string]any{"rules": []any{map[string]any{"mode": "allow", "patterns": patterns}}}}
}

// isServersFault reports whether a response is an error of the server.
func isServersFault(status int, reply []byte) bool {
	return status == http.StatusInternalServerError || bytes.Contains(reply, []byte(`"code":"internal"`))
}
