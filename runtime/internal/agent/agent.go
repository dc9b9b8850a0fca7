package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/mux"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/stdio"
	"gaol/vfs/hostfs"
)

// Agent serves one sandbox.
type Agent struct {
	create func(context.Context, *sandbox.Spec) (sandbox.Sandbox, error)
	life   context.Context

	mu        sync.Mutex
	changed   sync.Cond // a file has arrived, or the agent ends
	sandbox   sandbox.Sandbox
	gateway   *sandbox.Gateway
	files     hostfs.Files
	streams   map[FileOf]*mux.Stream
	processes map[uint64]*running
	terminals map[uint64]*terminal
	calls     map[uint64]sandbox.CommandCall
	lastCall  uint64
}

// Serve serves a connection until it ends, and then closes the sandbox, which create makes.
func Serve(conn net.Conn, create func(context.Context, *sandbox.Spec) (sandbox.Sandbox, error)) error {
	life, end := context.WithCancel(context.Background())
	a := &Agent{
		create: create, life: life, streams: map[FileOf]*mux.Stream{}, processes: map[uint64]*running{},
		terminals: map[uint64]*terminal{}, calls: map[uint64]sandbox.CommandCall{},
	}
	a.changed.L = &a.mu
	s := mux.Server(conn)
	var work sync.WaitGroup
	for {
		stream, err := s.Accept()
		if err != nil {
			break
		}
		work.Go(func() { a.serve(stream) })
	}
	end()
	a.wake()
	err := a.close()
	work.Wait()
	return err
}

func (a *Agent) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed.Broadcast()
}

// close closes all open files, terminals and listeners, and the sandbox. Their users have ended, or end now.
func (a *Agent) close() error {
	a.mu.Lock()
	gateway, files, opened, terminals := a.gateway, a.files, a.sandbox, slices.Collect(maps.Values(a.terminals))
	a.mu.Unlock()
	var err error
	if gateway != nil {
		err = gateway.Close()
	}
	for _, t := range terminals {
		_ = t.Close() // nothing was written
	}
	if files != nil {
		err = errors.Join(err, files.Close())
	}
	if opened != nil {
		err = errors.Join(err, opened.Close())
	}
	return err
}

// serve serves a stream.
func (a *Agent) serve(s *mux.Stream) {
	keep := false
	defer func() {
		if !keep {
			_ = s.Close() // the session may have ended
		}
	}()
	var r Request
	if err := Read(s, MaxRequest, &r); err != nil {
		return
	}
	if r.Op == "file" {
		var f FileOf
		if keep = json.Unmarshal(r.In, &f) == nil; keep {
			a.keep(f, s)
		}
		return
	}
	do := operations[r.Op]
	if do == nil {
		_ = Write(s, Reply{Error: Encode(fmt.Errorf("agent: unknown operation %q", r.Op))})
		return
	}
	if r.Op != "create" && a.opened() == nil {
		_ = Write(s, Reply{Error: Encode(sandbox.ErrClosed)}) // the session may have ended
		return
	}
	if out, err := do(a, s, r.In); !errors.Is(err, errReplied) {
		reply := Reply{Error: Encode(err)}
		if err == nil && out != nil {
			reply.Out, err = json.Marshal(out)
			reply.Error = Encode(err)
		}
		_ = Write(s, reply) // the session may have ended
	}
}

// keep keeps the stream of a file until its process is started, or remote resets it.
func (a *Agent) keep(f FileOf, s *mux.Stream) {
	a.mu.Lock()
	a.streams[f] = s
	a.changed.Broadcast()
	a.mu.Unlock()
	<-s.Stopped()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.streams[f] == s {
		delete(a.streams, f)
		_ = s.Close() // nothing was written
	}
}

// errReplied is the error of an operation that has written its reply.
var errReplied = errors.New("replied")

// operation performs an operation. Its stream is s.
type operation func(a *Agent, s *mux.Stream, in json.RawMessage) (out any, err error)

// of returns an operation with an input.
func of[In any](do func(a *Agent, s *mux.Stream, in *In) (out any, err error)) operation {
	return func(a *Agent, s *mux.Stream, text json.RawMessage) (any, error) {
		in := new(In)
		if len(text) > 0 {
			if err := json.Unmarshal(text, in); err != nil {
				return nil, err
			}
		}
		return do(a, s, in)
	}
}

type nothing struct{}

// operations are the operations but file, by name.
var operations = map[string]operation{
	"create": of((*Agent).open),
	"start":  of((*Agent).start),
	"warm":   of(func(a *Agent, s *mux.Stream, park *bool) (any, error) { return nil, a.opened().Warm(a.until(s), *park) }),
	"setPaused": of(func(a *Agent, s *mux.Stream, paused *bool) (any, error) {
		return nil, a.opened().SetPaused(a.until(s), *paused)
	}),
	"alive":      of(func(a *Agent, _ *mux.Stream, _ *nothing) (any, error) { return a.opened().Alive(), nil }),
	"addCommand": of(func(a *Agent, _ *mux.Stream, name *string) (any, error) { return nil, a.opened().AddCommand(*name) }),
	"listeners":  of(func(a *Agent, _ *mux.Stream, port *uint16) (any, error) { return a.opened().Listeners(*port) }),
	"resources":  of(func(a *Agent, s *mux.Stream, _ *nothing) (any, error) { return a.opened().Resources(a.until(s)) }),
	"free": of(func(a *Agent, _ *mux.Stream, _ *nothing) (any, error) {
		disk, files, err := a.opened().Free()
		return Room{disk, files}, err
	}),
	"signal": about(processes, func(p *running, _ *mux.Stream, in Signal) (any, error) {
		return nil, p.Signal(in.Signal, in.Group)
	}),
	"kill":  about(processes, func(p *running, _ *mux.Stream, _ Number) (any, error) { p.Kill(); return nil, nil }),
	"usage": about(processes, func(p *running, _ *mux.Stream, _ Number) (any, error) { return p.Usage() }),
	"flush": about(processes, func(p *running, _ *mux.Stream, _ Number) (any, error) { p.flush(); return nil, nil }),

	"dial":    of((*Agent).dial),
	"gateway": of(func(a *Agent, _ *mux.Stream, _ *nothing) (any, error) { return a.openGateway() }),
	"accept":  of((*Agent).accept),
	"packets": of((*Agent).packets),
	"owner": of(func(a *Agent, _ *mux.Stream, in *Owner) (any, error) {
		g := a.openedGateway()
		if g == nil {
			return nil, net.ErrClosed
		}
		return g.Owner(in.Network, in.Guest, in.To)
	}),

	"terminal":   of((*Agent).openTerminal),
	"resize":     about(terminals, func(t *terminal, _ *mux.Stream, in Size) (any, error) { return nil, t.Resize(in.Size) }),
	"endOfInput": about(terminals, func(t *terminal, _ *mux.Stream, _ Number) (any, error) { return t.EndOfInput() }),
	"endOutput": about(terminals, func(t *terminal, _ *mux.Stream, _ Number) (any, error) {
		t.EndOutput()
		t.output.End() // other processes may hold it open
		return nil, nil
	}),

	"arguments": about(calls, func(c sandbox.CommandCall, s *mux.Stream, in Most) (any, error) {
		list, err := c.Arguments(in.Most)
		var text []byte // each ends with a 0 byte
		for _, arg := range list {
			text = append(append(text, arg...), 0)
		}
		return nil, sendBytes(s, text, err)
	}),
	"input": about(calls, func(c sandbox.CommandCall, s *mux.Stream, in Most) (any, error) {
		data, err := c.Input(in.Most)
		return nil, sendBytes(s, data, err)
	}),
	"reply": about(calls, func(c sandbox.CommandCall, _ *mux.Stream, in Output) (any, error) {
		return nil, c.Reply(in.Output, in.Errors, in.Status)
	}),
	"wait": about(calls, func(c sandbox.CommandCall, _ *mux.Stream, _ Number) (any, error) { c.Wait(); return nil, nil }),
	"deadline": about(calls, func(c sandbox.CommandCall, _ *mux.Stream, in Deadline) (any, error) {
		if in.Within == 0 {
			return nil, c.SetDeadline(time.Time{})
		}
		return nil, c.SetDeadline(time.Now().Add(in.Within))
	}),
	"closeCall": of(func(a *Agent, _ *mux.Stream, in *Number) (any, error) {
		c, err := find(a, a.calls, *in)
		if err == nil {
			c.Close()
			a.forget(func() { delete(a.calls, in.Number) })
		}
		return nil, err
	}),
}

func processes(a *Agent) map[uint64]*running        { return a.processes }
func terminals(a *Agent) map[uint64]*terminal       { return a.terminals }
func calls(a *Agent) map[uint64]sandbox.CommandCall { return a.calls }

// about returns an operation on the value of the input's number.
func about[T any, In interface{ number() Number }](list func(*Agent) map[uint64]T, do func(v T, s *mux.Stream, in In) (any, error)) operation {
	return of(func(a *Agent, s *mux.Stream, in *In) (any, error) {
		v, err := find(a, list(a), (*in).number())
		if err != nil {
			return nil, err
		}
		return do(v, s, *in)
	})
}

// find returns the value of a number, or sandbox.ErrClosed.
func find[T any](a *Agent, list map[uint64]T, n Number) (T, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := list[n.Number]
	if !ok {
		return v, sandbox.ErrClosed
	}
	return v, nil
}

// forget calls remove with the lock.
func (a *Agent) forget(remove func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	remove()
}

// opened returns the sandbox.
//
// Preconditions: serve has checked that there is one.
func (a *Agent) opened() sandbox.Sandbox {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sandbox
}

// until returns a context that ends when remote closes the stream, which it does after the reply at the latest.
func (a *Agent) until(s *mux.Stream) context.Context {
	ctx, cancel := context.WithCancel(a.life)
	go func() {
		<-s.Stopped()
		cancel()
	}()
	return ctx
}

// open makes the sandbox.
func (a *Agent) open(s *mux.Stream, in *Create) (any, error) {
	for _, m := range in.Mounts {
		source, err := os.OpenFile(m.Source, unix.O_PATH, 0)
		if err != nil {
			return nil, err
		}
		defer source.Close()
		m.Mount.Source = source
		in.Spec.Mounts = append(in.Spec.Mounts, m.Mount)
	}
	made, err := a.create(a.until(s), &in.Spec)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.life.Err() != nil || a.sandbox != nil {
		return nil, errors.Join(sandbox.ErrClosed, made.Close())
	}
	a.sandbox = made
	return Created{made.Missing()}, nil
}

// terminal is a terminal whose output is read.
type terminal struct {
	sandbox.Terminal
	output *stdio.Reader
}

// openTerminal opens a terminal, and carries its bytes.
func (a *Agent) openTerminal(s *mux.Stream, in *Size) (any, error) {
	opened, err := a.opened().OpenTerminal(in.Size)
	if err != nil {
		return nil, err
	}
	t := &terminal{opened, stdio.NewTerminalReader(opened)}
	a.mu.Lock()
	a.terminals[in.Number.Number] = t
	a.mu.Unlock()
	defer a.forget(func() { delete(a.terminals, in.Number.Number) })
	defer func() { _ = t.Close() }() // nothing is lost
	if err := Write(s, Reply{}); err != nil {
		return nil, errReplied
	}
	go func() {
		_, _ = io.Copy(t, s) // until the stream or the terminal ends
		t.output.End()
	}()
	t.output.Pump(&output{reader: t.output, stream: s})
	return nil, errReplied
}

// dial connects to a server of the guest, and carries the bytes.
func (a *Agent) dial(s *mux.Stream, in *Dial) (any, error) {
	c, err := a.opened().Dial(a.until(s), in.To, in.Buffer)
	if err != nil {
		return nil, err
	}
	if err := Write(s, Reply{}); err == nil {
		Carry(s, c)
	}
	return nil, errReplied
}

// openGateway opens the gateway.
func (a *Agent) openGateway() (any, error) {
	g, err := a.opened().OpenGateway()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gateway = g
	return Opened{len(g.TCP) + 1, g.Resolver}, nil
}

// openedGateway returns the gateway, nil before it is opened.
func (a *Agent) openedGateway() *sandbox.Gateway {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gateway
}

// accept accepts a connection of a listener of the gateway, and carries its bytes.
func (a *Agent) accept(s *mux.Stream, index *int) (any, error) {
	g := a.openedGateway()
	if g == nil || *index < 0 || *index > len(g.TCP) {
		return nil, net.ErrClosed
	}
	l := append(g.TCP[:len(g.TCP):len(g.TCP)], g.DNSTCP)[*index]
	c, err := l.Accept()
	if err != nil {
		return nil, err
	}
	if err := Write(s, reply(Accepted{addrPort(c.LocalAddr()), addrPort(c.RemoteAddr())})); err != nil {
		return nil, errors.Join(errReplied, c.Close())
	}
	Carry(s, c)
	return nil, errReplied
}

// reply returns a reply with an output that can always be encoded.
func reply(out any) Reply {
	text, err := json.Marshal(out)
	return Reply{Out: text, Error: Encode(err)}
}

func addrPort(a net.Addr) netip.AddrPort {
	if a, ok := a.(interface{ AddrPort() netip.AddrPort }); ok {
		return a.AddrPort()
	}
	return netip.AddrPort{}
}

// packets carries the datagrams of the gateway.
func (a *Agent) packets(s *mux.Stream, _ *nothing) (any, error) {
	g := a.openedGateway()
	if g == nil || g.DNS == nil {
		return nil, net.ErrClosed
	}
	if err := Write(s, Reply{}); err != nil {
		return nil, errReplied
	}
	go func() {
		for {
			var p Packet
			if err := Read(s, MaxPacket, &p); err != nil {
				return
			}
			_, _ = g.DNS.WriteTo(p.Data, net.UDPAddrFromAddrPort(p.Peer)) // the guest asks again
		}
	}()
	data := make([]byte, 64<<10)
	for {
		n, from, err := g.DNS.ReadFrom(data)
		if err == nil {
			err = Write(s, Packet{addrPort(from), data[:n]})
		}
		if err != nil {
			return nil, errReplied
		}
	}
}

// MaxPacket bounds a Packet in bytes of JSON.
const MaxPacket = 128 << 10
