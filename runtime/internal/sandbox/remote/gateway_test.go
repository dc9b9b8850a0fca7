package remote

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"

	"gaol/internal/mux"
	"gaol/runtime/internal/agent"
)

// An agent that offers connections without end gets no more than some open ones.
func TestConnectionsAreBounded(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a gateway needs root")
	}
	defer func(most int) { maxConnections = most }(maxConnections)
	maxConnections = 8
	var open, most, count atomic.Int64
	offered, end := make(chan struct{}), make(chan struct{}) // a connection is open until it can receive from end
	s, err := New(t.Context(), connect(t, operations(func(op string, s *mux.Stream) {
		switch op {
		case "gateway":
			_ = agent.Write(s, agent.Reply{Out: json.RawMessage(`{"listeners":1}`)})
		case "accept":
			now := open.Add(1)
			for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
			}
			_ = agent.Write(s, agent.Reply{Out: json.RawMessage(fmt.Sprintf(`{"Local":"203.0.113.1:80","Remote":"192.0.2.2:%d"}`, 1000+count.Add(1)))})
			offered <- struct{}{}
			<-end
			open.Add(-1)
		default:
			_ = agent.Write(s, agent.Reply{})
			_, _ = io.Copy(io.Discard, s)
		}
	})), &spec)
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.OpenGateway()
	if err != nil {
		t.Fatal(err)
	}
	for range maxConnections {
		<-offered
	}
	for range 50 {
		_, _ = g.Owner("tcp", netip.AddrPort{}, netip.AddrPort{}) // more connections would have been open after it
		end <- struct{}{}
		<-offered
	}
	go func() {
		for range offered { // of connections that are being offered at the end
		}
	}()
	close(end)
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	close(offered)
	if n := most.Load(); n > int64(maxConnections) {
		t.Errorf("%d connections were open, more than %d", n, maxConnections)
	}
}
