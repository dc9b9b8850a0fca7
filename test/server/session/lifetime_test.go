package session

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	protocol "gaol/internal/session"
	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// TestSessionEnds: everything that a session has created ends with it, except for detached sandboxes.
func TestSessionEnds(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	first, other := dial(t, s), dial(t, s)
	sb, detached := createIn(t, first, client.CreateOptions{}), createIn(t, first, client.CreateOptions{Detached: true})
	p := spawn(t, sb, runtime.SpawnOptions{}, "sleep", "1000")
	q := spawn(t, detached, runtime.SpawnOptions{}, "sleep", "1000")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*client.Process{p, q} {
		if _, err := p.Wait(soon(t)); !errors.Is(err, client.ErrDisconnected) {
			t.Errorf("%v", err)
		}
	}
	harness.WaitFor(t, "only the detached sandbox is left, without processes", func() bool {
		list, err := other.Sandboxes(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		return len(list) == 1 && list[0].ID == detached.ID() && list[0].Processes == 0
	})
	again := other.Sandbox(detached.ID())
	if res, err := again.Run(soon(t), `__return(1)`, runtime.RunOptions{}); err != nil || string(res.Value) != "1" {
		t.Errorf("%v", err)
	}
	if err := errors.Join(again.Close(), again.Close()); err != nil {
		t.Error(err)
	}
	if _, err := again.Run(soon(t), ``, runtime.RunOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := sb.Run(soon(t), ``, runtime.RunOptions{}); !errors.Is(err, client.ErrDisconnected) {
		t.Errorf("%v", err)
	}
}

// TestServerEnds: a client learns that its server has ended, and its runs end.
func TestServerEnds(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	c := dial(t, s)
	sb := createIn(t, c, client.CreateOptions{})
	p := spawn(t, sb, runtime.SpawnOptions{}, "sleep", "1000")
	if err := s.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	<-p.Done()
	if err := c.Err(); !errors.Is(err, client.ErrDisconnected) {
		t.Errorf("%v", err)
	}
	if _, err := client.Dial(soon(t), client.Options{Socket: s.Socket}); err == nil {
		t.Error("a server that has been closed accepts connections")
	}
}

// tokens has one token, called other.
func tokens(t *testing.T, token string) *tenant.Tokens {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, fmt.Appendf(nil, "other %x\n", sha256.Sum256([]byte(token))), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := tenant.ReadTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestHandshakes: a handshake without a token, from a foreign page, or with another protocol fails.
func TestHandshakes(t *testing.T) {
	const token = "a token of 32 characters or more."
	s := servertest.Start(t, servertest.Options{Tokens: tokens(t, token)})
	if _, err := client.Dial(soon(t), client.Options{Address: "http://" + s.Address, Token: token + "x"}); !isCode(err, "unauthorized") {
		t.Errorf("a wrong token: %v", err)
	}
	authorized := "Bearer " + token
	for name, tc := range map[string]struct {
		header http.Header
		want   int
	}{
		"no protocol":   {http.Header{"Authorization": {authorized}}, http.StatusUpgradeRequired},
		"another one":   {http.Header{"Authorization": {authorized}, "Protocol": {"gaol.v0"}}, http.StatusUpgradeRequired},
		"foreign page":  {http.Header{"Authorization": {authorized}, "Protocol": {protocol.Protocol}, "Origin": {"http://evil.example"}}, http.StatusForbidden},
		"own page":      {http.Header{"Authorization": {authorized}, "Protocol": {protocol.Protocol}, "Origin": {"http://" + s.Address}}, http.StatusSwitchingProtocols},
		"no token":      {http.Header{"Protocol": {protocol.Protocol}}, http.StatusUnauthorized},
		"foreign names": {http.Header{"Authorization": {authorized}, "Protocol": {protocol.Protocol}, "Host": {"evil.example"}}, http.StatusMisdirectedRequest},
	} {
		host, protocols := tc.header.Get("Host"), tc.header["Protocol"]
		tc.header.Del("Host")
		tc.header.Del("Protocol")
		c, response, err := websocket.Dial(soon(t), "ws://"+s.Address+"/v1/session", &websocket.DialOptions{HTTPHeader: tc.header, Host: host, Subprotocols: protocols})
		if err == nil {
			_ = c.CloseNow()
		}
		if response == nil || response.StatusCode != tc.want {
			t.Errorf("%s: %v, want %d", name, err, tc.want)
		}
	}
}

// TestTenants: another tenant's sandbox does not exist, and its processes are its session's.
func TestTenants(t *testing.T) {
	const token = "a token of 32 characters or more."
	s := servertest.Start(t, servertest.Options{Tokens: tokens(t, token)})
	sb := createIn(t, dial(t, s), client.CreateOptions{})
	other, err := client.Dial(soon(t), client.Options{Address: "http://" + s.Address, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if list, err := other.Sandboxes(soon(t)); err != nil || len(list) > 0 {
		t.Errorf("%v %+v", err, list)
	}
	stranger := other.Sandbox(sb.ID())
	if _, err := stranger.Run(soon(t), ``, runtime.RunOptions{}); !isCode(err, "not_found") {
		t.Errorf("run: %v", err)
	}
	if _, err := stranger.Info(soon(t)); !isCode(err, "not_found") {
		t.Errorf("info: %v", err)
	}
	if err := stranger.Close(); err != nil { // nothing to close
		t.Error(err)
	}
	if _, err := sb.Info(soon(t)); err != nil {
		t.Error(err)
	}
}

// TestConcurrentRequests: the requests of a session count towards the quota of concurrent ones, as long as
// they have no result.
func TestConcurrentRequests(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Settings: func(o *settings.Settings) { o.Tenant.Concurrent = 3 }})
	c := dial(t, s) // is a request itself
	sb := createIn(t, c, client.CreateOptions{})
	p, q := spawn(t, sb, runtime.SpawnOptions{}, "sleep", "1000"), spawn(t, sb, runtime.SpawnOptions{}, "sleep", "1000")
	if _, err := c.Sandboxes(soon(t)); !isCode(err, "quota") || !strings.Contains(err.Error(), "concurrentRequests") {
		t.Errorf("%v", err)
	}
	for _, p := range []*client.Process{p, q} {
		p.Kill()
		if _, err := p.Wait(soon(t)); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Sandboxes(soon(t)); err != nil {
		t.Error(err)
	}
}

// TestQuota: quotas hold for sessions, too, and sessions have one of their own.
func TestQuota(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Settings: func(o *settings.Settings) { o.Tenant.Sandboxes, o.Tenant.Runs = 1, 1 }})
	c := dial(t, s)
	sb := createIn(t, c, client.CreateOptions{})
	_, err := c.Create(soon(t), client.CreateOptions{})
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Code != "quota" || e.Status != http.StatusTooManyRequests || e.RetryAfter <= 0 {
		t.Errorf("%+v", err)
	}
	p := spawn(t, sb, runtime.SpawnOptions{}, "sleep", "1000")
	if _, err := sb.Run(soon(t), ``, runtime.RunOptions{}); !isCode(err, "quota") {
		t.Errorf("%v", err)
	}
	p.Kill()
	if _, err := p.Wait(soon(t)); err != nil {
		t.Error(err)
	}
	if _, err := sb.Run(soon(t), ``, runtime.RunOptions{}); err != nil {
		t.Error(err)
	}
	clients := []*client.Client{}
	for range 63 {
		clients = append(clients, dial(t, s))
	}
	if _, err := client.Dial(soon(t), client.Options{Socket: s.Socket}); !isCode(err, "quota") {
		t.Errorf("a 65th session: %v", err)
	}
	_ = clients[0].Close()
	harness.WaitFor(t, "a session is free", func() bool {
		c, err := client.Dial(soon(t), client.Options{Socket: s.Socket})
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}
