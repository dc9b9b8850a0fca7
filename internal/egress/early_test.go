package egress

import (
	"io"
	"net"
	"testing"
)

// A relay sends a socket with its request. If this process has many of these, it closes the socket and asks
// for one when it dials, so that connections that wait take no descriptors.
func TestEarlySockets(t *testing.T) {
	w := newWorld(t, `"allow"`, Limits{}, 9000)
	w.listen(publicV4, 9000, func(c net.Conn) { _, _ = io.WriteString(c, "hello") })
	for _, free := range []bool{true, false} {
		if !free {
			for ownEarly.try() {
			}
			defer func() {
				for len(ownEarly.slots) > 0 {
					<-ownEarly.slots
				}
			}()
		}
		got, err := w.tryExchange(publicV4.String(), 9000, "")
		if err != nil || got != "hello" {
			t.Errorf("free turns %t: %q, %v", free, got, err)
		}
		if free && len(ownEarly.slots) > 0 {
			t.Errorf("%d turns are left", len(ownEarly.slots))
		}
	}
}
