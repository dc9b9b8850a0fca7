package attack

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/test/harness"
	"gaol/test/server/servertest"
	"gaol/test/tier"
)

// full is an address whose server accepts no connections.
var full = netip.MustParseAddrPort("93.184.215.14:9002")

// fill listens on full, and fills the queue, so that the kernel drops further connects.
func fill(t *testing.T) {
	t.Helper()
	address := &unix.SockaddrInet4{Addr: full.Addr().As4(), Port: int(full.Port())}
	socket := func() int {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	listener := socket()
	if err := unix.Bind(listener, address); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(listener, 0); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if err := unix.Connect(socket(), address); err != nil && err != unix.EINPROGRESS {
			t.Fatal(err)
		}
	}
}

// TestEgressQuotas: five sandboxes of one tenant, with connects and look-ups without an answer, keep no descriptors
// and no turns from another tenant.
func TestEgressQuotas(t *testing.T) {
	tier.Soak(t)
	w := startWorld(t)
	fill(t)
	ctx, cancel := context.WithCancel(t.Context())
	var attacks sync.WaitGroup
	defer attacks.Wait()
	defer cancel()
	permissions := network("tcp://93.184.215.14:*", "tcp://*."+silentZone+":*")
	for range 5 {
		for _, code := range []string{fmt.Sprintf(connecting, full.Port(), full.Addr(), ""), fmt.Sprintf(asking, silentZone)} {
			attacks.Go(func() { w.guest(ctx, t, "/v1/run", map[string]any{"code": code, "permissions": permissions}) })
		}
	}
	harness.WaitFor(t, "connects and look-ups exceed quotas", func() bool {
		text := w.metrics(t)
		return strings.Contains(text, `{limit="pendingConnects",scope="tenant"}`) && strings.Contains(text, `{limit="pendingLookups",scope="tenant"}`)
	})
	if most := int64(4096 / 8 * 7); w.use(t).descriptors > most {
		t.Errorf("the server has %d descriptors", w.use(t).descriptors)
	}
	w.neighbourConnects(t)
}

// neighbourConnects makes the neighbour create a sandbox that looks up a name, and reads from a server.
func (w *world) neighbourConnects(t *testing.T) {
	t.Helper()
	made := servertest.Send(t, w.neighbour, http.MethodPost, "/v1/sandboxes", map[string]any{"permissions": network(fmt.Sprint("tcp://", sending), "tcp://"+named+":80")})
	made.Want(t, http.StatusCreated)
	var box struct{ ID string }
	made.Into(t, &box)
	code := fmt.Sprintf(`import net from 'node:net'; import dns from 'node:dns/promises';
const { address } = await dns.lookup(%q);
const s = net.connect(%d, %q), [data] = await (await import('node:events')).once(s, 'data');
s.destroy();
console.log(address !== '', data.length > 0);`, named, sending.Port(), sending.Addr())
	began := time.Now()
	ran := servertest.Send(t, w.neighbour, http.MethodPost, "/v1/sandboxes/"+box.ID+"/run", map[string]any{"code": code, "timeoutMs": hangTime.Milliseconds()})
	ran.Want(t, http.StatusOK)
	var result struct{ Stdout string }
	if ran.Into(t, &result); result.Stdout != "true true\n" {
		t.Errorf("the neighbour: %s", ran.Body)
	}
	t.Logf("the neighbour's run took %v", time.Since(began))
}

// metrics returns the server's metrics.
func (w *world) metrics(t *testing.T) string {
	t.Helper()
	server := servertest.Server{Socket: w.socket}
	root := server.Client(t, servertest.User{})
	defer root.CloseIdleConnections()
	status, reply, err := send(t.Context(), root, http.MethodGet, "/metrics", "")
	if err != nil || status != http.StatusOK {
		t.Fatalf("metrics: %d, %v", status, err)
	}
	return string(reply)
}
