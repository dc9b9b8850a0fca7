package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"gaol/internal/mux"
	"gaol/jail/gateway"
	"gaol/runtime/internal/agent"
	"gaol/runtime/internal/sandbox"
)

// OpenGateway implements sandbox.Sandbox. A network namespace without anything else repeats the guest's connections, from and to
// the same addresses. So egress need not know that there is an agent.
func (s *Sandbox) OpenGateway() (_ *sandbox.Gateway, err error) {
	opened, err := soon[agent.Opened](s, "gateway", nil)
	if err != nil {
		return nil, err
	}
	limit, cancel := s.late()
	defer cancel()
	stream, _, err := open[struct{}](limit, s, "packets", nil)
	if err != nil {
		return nil, err
	}
	own, err := gateway.OpenNew(gateway.Config{Host: s.hostPorts})
	if err != nil {
		stream.Reset()
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	held := make(chan struct{}, maxConnections)
	for i := range min(opened.Listeners, maxListeners) {
		go s.accept(ctx, own, i, held)
	}
	g := &sandbox.Gateway{TCP: own.Listeners(), DNS: &packets{Stream: stream, resolver: opened.Resolver}, DNSTCP: own.DNSTCP, Resolver: opened.Resolver}
	g.Owner = func(network string, guest, to netip.AddrPort) (uint64, error) {
		return soon[uint64](s, "owner", agent.Owner{Network: network, Guest: guest, To: to})
	}
	g.Close = func() error {
		end() // accept may wait until the agent reads, or the sandbox is closed
		stream.Reset()
		return own.Close()
	}
	return g, nil
}

// maxListeners bounds the listeners of a gateway.
const maxListeners = 3 * 64

// maxConnections bounds the open connections of a gateway, of which egress allows fewer. Only a test changes it.
var maxConnections = 4096

// acceptPause is the time after a connection that could not be accepted.
const acceptPause = 10 * time.Millisecond

// accept accepts the connections of a listener until ctx ends, and repeats them in the namespace of a gateway. Each is in held.
func (s *Sandbox) accept(ctx context.Context, own *gateway.Gateway, index int, held chan struct{}) {
	for {
		select {
		case held <- struct{}{}:
		case <-ctx.Done():
			return
		}
		stream, a, err := open[agent.Accepted](ctx, s, "accept", index)
		switch {
		case ctx.Err() != nil, errors.Is(err, sandbox.ErrClosed), errors.Is(err, net.ErrClosed):
			return
		case err != nil: // the guest has reset it, or the agent has too many descriptors
			<-held
			time.Sleep(acceptPause)
			continue
		}
		go func() {
			defer func() { <-held }()
			c, err := own.DialFrom(ctx, plain(a.Remote), plain(a.Local))
			if err != nil {
				stream.Reset()
				return
			}
			agent.Carry(stream, c)
		}()
	}
}

// plain returns an address without the form of IPv4 in IPv6.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// packets are the datagrams of the gateway.
type packets struct {
	*mux.Stream
	resolver         netip.Addr
	received         []byte // part of a packet
	reading, writing sync.Mutex
}

// LocalAddr implements [net.PacketConn].
func (p *packets) LocalAddr() net.Addr {
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.resolver, 53))
}

// ReadFrom implements [net.PacketConn]. A deadline may pass within a packet, whose rest the next call reads.
func (p *packets) ReadFrom(data []byte) (int, net.Addr, error) {
	p.reading.Lock()
	defer p.reading.Unlock()
	part := make([]byte, 4<<10)
	for {
		var packet agent.Packet
		r := bytes.NewReader(p.received)
		switch err := agent.Read(r, agent.MaxPacket, &packet); {
		case err == nil:
			p.received = p.received[len(p.received)-r.Len():]
			return copy(data, packet.Data), net.UDPAddrFromAddrPort(packet.Peer), nil
		case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			return 0, nil, errors.Join(net.ErrClosed, err)
		}
		n, err := p.Read(part)
		p.received = append(p.received, part[:n]...)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, nil, err
		} else if err != nil {
			return 0, nil, errors.Join(net.ErrClosed, err)
		}
	}
}

// WriteTo implements [net.PacketConn].
func (p *packets) WriteTo(data []byte, to net.Addr) (int, error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	peer, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, net.InvalidAddrError("not of UDP")
	}
	return len(data), agent.Write(p.Stream, agent.Packet{Peer: peer.AddrPort(), Data: data})
}
