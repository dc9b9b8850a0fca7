package egress

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/internal/egress/relay"
)

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
