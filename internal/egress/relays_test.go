package egress

import (
	"errors"
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/internal/egress/relay"
)

// A relay sends a socket with its request. If this process has many of these, it closes the socket and asks
// for one when it dials, so that connections that wait take no descriptors.
func TestEarlySockets(t *testing.T) {
	w := newWorld(t, `"allow"`, Limits{}, 9000)
	w.listen(publicV4, 9000, func(c net.Conn) { _, _ = io.WriteString(c, "hello") })
	for _, free := range []bool{true, false} {
		if !free {
			for ownEarly.TryAcquire(1) {
				defer ownEarly.Release(1)
			}
		}
		got, err := w.tryExchange(publicV4.String(), 9000, "")
		if err != nil || got != "hello" {
			t.Errorf("free turns %t: %q, %v", free, got, err)
		}
		if free {
			if !ownEarly.TryAcquire(maxEarly) {
				t.Fatal("a turn was not released")
			}
			ownEarly.Release(maxEarly)
		}
	}
}

// If a relay cannot be started, the guest's connections are reset, and a denial and an error report it.
func TestRelayNotStarted(t *testing.T) {
	failed := make(chan error, 100)
	w := newWorldWith(t, Config{Relay: relay.Place{StateDir: "/dev/null/state"}, Failed: func(err error) { failed <- err }}, `"allow"`, Limits{}, 9000)
	for range 3 {
		if _, err := w.tryExchange(publicV4.String(), 9000, ""); !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.ENOTCONN) {
			t.Fatalf("got %v", err)
		}
	}
	if err := <-failed; !errors.Is(err, errNotStarted) || !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("failed with %v", err)
	}
	e := w.waitEvent(func(e Event) bool { return e.Limit == "egressProcess" })
	if e.Outcome != Denied || e.Address.Addr() != publicV4 || e.Port != 9000 {
		t.Errorf("got %+v", e)
	}
	if n := w.client.Usage().Denied; n != 3 {
		t.Errorf("%d denials", n)
	}
}
