package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/internal/mux"
	"gaol/policy"
	"gaol/runtime/internal/agent"
	"gaol/runtime/internal/sandbox"
	"gaol/vfs/hostfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// impostor serves a connection as a guest would that has taken over the agent, until it is closed.
type impostor func(c *deaf)

// operations answers create as the agent does, and each other operation by serve.
func operations(serve func(op string, s *mux.Stream)) impostor {
	return func(c *deaf) {
		session := mux.Server(c)
		var work sync.WaitGroup
		for {
			s, err := session.Accept()
			if err != nil {
				break
			}
			work.Go(func() {
				defer func() { _ = s.Close() }()
				var r agent.Request
				switch err := agent.Read(s, agent.MaxRequest, &r); {
				case err != nil:
				case r.Op == "create":
					_ = agent.Write(s, agent.Reply{Out: json.RawMessage(`{}`)})
				default:
					serve(r.Op, s)
				}
			})
		}
		work.Wait()
	}
}

// deaf is a connection that can stop reading.
type deaf struct {
	net.Conn
	isDeaf atomic.Bool
	ended  chan struct{}
	once   sync.Once
}

func (d *deaf) Read(p []byte) (int, error) {
	if d.isDeaf.Load() {
		<-d.ended
	}
	return d.Conn.Read(p)
}

func (d *deaf) Close() error {
	d.once.Do(func() { close(d.ended) })
	return d.Conn.Close()
}

// always writes the same bytes until the stream ends.
func always(text string) impostor {
	return operations(func(_ string, s *mux.Stream) {
		many := bytes.Repeat([]byte(text), 1+64<<10/len(text))
		for {
			if _, err := s.Write(many); err != nil {
				return
			}
		}
	})
}

// reading writes the same text until the stream ends, and reads the replies of the host.
func reading(text string) impostor {
	return operations(func(_ string, s *mux.Stream) {
		var work sync.WaitGroup
		defer work.Wait()
		work.Go(func() { _, _ = io.Copy(io.Discard, s) })
		for {
			if _, err := io.WriteString(s, text); err != nil {
				return
			}
		}
	})
}

// framed returns a message.
func framed(text string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

const entry = `{"Path":"L2E=","Info":{"Name":"YQ==","Mode":420,"Size":1,"Modified":[1,2]}}`

// hostile are agents that a guest has taken over.
var hostile = map[string]impostor{
	"says nothing":  operations(func(_ string, s *mux.Stream) { _, _ = io.Copy(io.Discard, s) }),
	"reads nothing": func(c *deaf) { operations(func(string, *mux.Stream) { c.isDeaf.Store(true) })(c) },
	"stops reading": func(c *deaf) {
		time.AfterFunc(100*time.Millisecond, func() { c.isDeaf.Store(true) })
		operations(func(op string, s *mux.Stream) {
			if op != "writeFrom" {
				_ = agent.Write(s, agent.Reply{Out: json.RawMessage(`{"listeners":1}`)})
			}
			_, _ = io.Copy(io.Discard, s)
		})(c)
	},
	"ends":   func(c *deaf) { _ = c.Close() },
	"noise":  func(c *deaf) { _, _ = io.CopyN(c, rand.NewChaCha8([32]byte{1}), 1<<20) },
	"closes": operations(func(string, *mux.Stream) {}),

	"long messages":         always("\xff\xff\xff\xff[[[["),
	"long valid messages":   always(string([]byte{0, 0x0f, 0xff, 0xff}) + `{"out":[` + strings.Repeat(`0,`, 500<<10)),
	"empty objects":         always(framed(`{}`)),
	"empty outputs":         always(framed(`{"out":{}}`)),
	"wrong outputs":         always(framed(`{"out":[[-1],{"Size":-1}]}`)),
	"unknown errors":        always(framed(`{"error":{"text":"` + strings.Repeat("AAAA", 100<<10) + `","errno":-1,"is":["x","closed"],"op":"o"}}`)),
	"denials":               always(framed(`{"denied":{"scope":"fs","target":"` + strings.Repeat("x", 60<<10) + `"}}`)),
	"connections":           always(framed(`{"connect":"203.0.113.1:80"}`)),
	"commands":              always(framed(`{"command":{"name":"x","call":1}}`)),
	"exits":                 always(framed(`{"out":{"pid":-5}}`) + framed(`{"exit":{"exit":{"Code":-7,"Signal":1000},"usage":{"CPU":-1}}}`)),
	"entries":               always(framed(`{"out":{}}`) + framed(`{"Entries":[`+entry+`]}`)),
	"entries of elsewhere":  always(framed(`{"out":{}}`) + framed(`{"Entries":[{"Path":"Li4vLi4v","Info":{"Name":"Li4="}}]}`)),
	"visits":                always(framed(`{"Path":"L2E=","Info":{"Name":"YQ=="}}`)),
	"answered visits":       reading(framed(`{"Path":"L2E=","Info":{"Name":"YQ=="}}`)),
	"visits of elsewhere":   always(framed(`{"Path":"L2V0Yw==","Info":{"Name":"YQ=="}}`)),
	"chunks":                always(framed(`{}`) + framed(strings.Repeat("x", agent.MaxChunk-4))),
	"connections of guests": always(framed(`{"out":{"listeners":1000000,"Local":"192.0.2.1:80","Remote":"192.0.2.2:1000"}}`)),
}

// connect returns the host's end of a connection to an impostor.
func connect(t testing.TB, serve impostor) *Machine {
	t.Helper()
	host, file, err := kernfile.SocketPair(syscall.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	guest, err := net.FileConn(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	d := &deaf{Conn: guest, ended: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		serve(d)
		_ = d.Close() // it may be closed
	}()
	return &Machine{Conn: host, End: func() error {
		_ = d.Close() // as above
		<-ended
		return nil
	}}
}

var spec = sandbox.Spec{Plan: &policy.Plan{}}

// endless has zero bytes without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// use starts all operations, and returns functions that release their files, as a runtime does before it closes the sandbox, and
// wait for them.
func use(s sandbox.Sandbox, limit time.Duration) (release, wait func()) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	var work sync.WaitGroup
	var opened atomic.Pointer[sandbox.Gateway]
	var connection atomic.Pointer[sandbox.Conn]
	files, err := s.Files()
	if err == nil {
		for _, do := range []func(){
			func() { _, _ = files.ReadFile("/a") },
			func() { _ = files.WriteFile("/a", make([]byte, 1<<20), hostfs.WriteOptions{}) },
			func() { _, _ = files.Stat("/a") },
			func() { _, _ = files.ReadDir("/") },
			func() { _, _, _ = files.List(ctx, "/", hostfs.ListOptions{}) },
			func() { _, _ = files.WriteFrom("/a", strings.NewReader("text"), hostfs.WriteOptions{}) },
			func() {
				_, _ = files.Tar(io.Discard, "/", hostfs.TarOptions{Left: func(hostfs.Skip) error { return nil }})
			},
			func() {
				_ = files.Walk("/", func(p string, _ *hostfs.Info, _ error) error {
					if p != "/" && !isBelow("/", p) {
						panic(p)
					}
					return nil
				})
			},
			func() {
				f, err := files.Open("/a")
				if err != nil {
					return
				}
				_, _ = f.ReadAt(make([]byte, 1<<20), 5)
				_, _ = fs.ReadDir(files.View("/"), ".")
				_ = f.Close()
			},
		} {
			work.Go(do)
		}
		for range 8 { // more than a socket buffers
			work.Go(func() { _, _ = files.WriteFrom("/a", endless{}, hostfs.WriteOptions{}) })
		}
	}
	for _, do := range []func(){
		func() { s.Alive() },
		func() { _ = s.Warm(ctx, true) },
		func() { _ = s.AddCommand("x") },
		func() { _, _ = s.Listeners(80) },
		func() { _, _ = s.Resources(ctx) },
		func() { _, _, _ = s.Free() },
		func() {
			if c, err := s.Dial(ctx, netip.MustParseAddrPort("127.0.0.1:80"), 1); err == nil {
				connection.Store(&c)
				_, _ = io.Copy(io.Discard, io.LimitReader(c, 1<<20))
			}
		},
		func() {
			t, err := s.OpenTerminal(sandbox.TerminalSize{Rows: 25, Cols: 80})
			if err == nil {
				_, _ = t.EndOfInput()
				t.EndOutput()
				_ = t.Close()
			}
		},
		func() { run(ctx, s) },
	} {
		work.Go(do)
	}
	work.Go(func() {
		g, err := s.OpenGateway()
		if err != nil {
			return
		}
		opened.Store(g)
		_, _ = g.Owner("tcp", netip.AddrPort{}, netip.AddrPort{})
		_ = g.DNS.SetReadDeadline(time.Now().Add(limit))
		_, _, _ = g.DNS.ReadFrom(make([]byte, 512))
	})
	release = func() {
		if c := connection.Load(); c != nil {
			_ = (*c).Close()
		}
		cancel()
		if files != nil {
			_ = files.Close()
		}
		if g := opened.Load(); g != nil {
			_ = g.Close()
		}
	}
	return release, func() {
		work.Wait()
		if g := opened.Load(); g != nil {
			_ = g.Close()
		}
	}
}

// run runs a program with all kinds of files and calls.
func run(ctx context.Context, s sandbox.Sandbox) {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	defer r.Close()
	defer w.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		panic(err)
	}
	defer null.Close()
	p, err := s.Start(ctx, &sandbox.Command{
		Args: []string{"node"}, Files: []io.ReadWriteCloser{null, w, w},
		Denied: func(policy.Denial) {}, Connect: func(netip.AddrPort) bool { return true }, OnOwner: func(uint64) {},
		OnCommand: func(_ string, c sandbox.CommandCall) error {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(10 * time.Millisecond))
			_, _ = c.Arguments(1 << 10)
			_, _ = c.Input(1 << 10)
			return syscall.EAGAIN
		},
	})
	if err != nil {
		return
	}
	_ = p.Signal(syscall.SIGTERM, false)
	_, _ = p.Usage()
	p.Kill()
	exit, _ := p.Wait()
	if exit.Code < 0 || exit.Code > 255 || exit.Signal < 0 || exit.Signal > 64 {
		panic(exit)
	}
}

// closeTime is how long Close may take, whatever the agent does.
const closeTime = 5 * time.Second

// mostMemory is how much memory an agent may make the host use: ReadFile returns 64 MiB, and garbage is not collected yet.
const mostMemory = 256 << 20

// check uses a sandbox of an agent for some time and closes it.
func check(t *testing.T, serve impostor, used time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	s, err := New(ctx, connect(t, serve), &spec)
	if err != nil {
		return
	}
	release, wait := use(s, used)
	var most, before goruntime.MemStats
	goruntime.ReadMemStats(&before)
	for end := time.Now().Add(used); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var now goruntime.MemStats
		if goruntime.ReadMemStats(&now); now.HeapAlloc > most.HeapAlloc {
			most = now
		}
	}

	if grown := int64(most.HeapAlloc) - int64(before.HeapAlloc); grown > mostMemory {
		t.Errorf("the host used %d MiB", grown>>20)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		release()
		_ = s.Close()
		wait()
	}()
	select {
	case <-closed:
	case <-time.After(closeTime):
		stacks := make([]byte, 64<<10)
		t.Fatalf("Close takes longer than %v\n%s", closeTime, stacks[:goruntime.Stack(stacks, true)])
	}
}

// Whatever an agent sends or omits, the host neither panics nor holds much of it, and Close ends everything soon.
func TestHostileAgents(t *testing.T) {
	for name, serve := range hostile {
		t.Run(name, func(t *testing.T) { check(t, serve, 300*time.Millisecond) })
	}
}

// Operations whose output is not valid, or longer than their bounds, fail.
func TestWrongOutputs(t *testing.T) {
	for _, tc := range []struct {
		agent string
		do    func(f hostfs.Files) error
	}{
		{"empty objects", func(f hostfs.Files) error { _, err := f.Stat("/a"); return err }},
		{"empty objects", func(f hostfs.Files) error { _, err := f.Open("/a"); return err }},
		{"entries of elsewhere", func(f hostfs.Files) error { _, err := f.ReadDir("/"); return err }},
		{"entries of elsewhere", func(f hostfs.Files) error {
			_, _, err := f.List(context.Background(), "/", hostfs.ListOptions{})
			return err
		}},
		{"chunks", func(f hostfs.Files) error { _, err := f.ReadFile("/a"); return err }},
		{"entries", func(f hostfs.Files) error { _, err := f.ReadDir("/"); return err }},
		{"answered visits", func(f hostfs.Files) error {
			return f.Walk("/", func(string, *hostfs.Info, error) error { return nil })
		}},
		{"visits of elsewhere", func(f hostfs.Files) error {
			return f.Walk("/workspace", func(p string, _ *hostfs.Info, _ error) error { panic(p) })
		}},
	} {
		s, err := New(t.Context(), connect(t, hostile[tc.agent]), &spec)
		if err != nil {
			t.Fatal(err)
		}
		files, err := s.Files()
		if err != nil {
			t.Fatal(err)
		}
		if err := tc.do(files); !errors.Is(err, errAgent) {
			t.Errorf("%s: %v", tc.agent, err)
		}
		if err := errors.Join(files.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
}

// Flush waits until the output that the agent has sent is in the process's files.
func TestFlush(t *testing.T) {
	const size = 10_000
	for range 50 {
		s, err := New(t.Context(), connect(t, operations(func(op string, s *mux.Stream) {
			switch op {
			case "file":
				_, _ = s.Write(make([]byte, size))
			case "start":
				_ = agent.Write(s, agent.Reply{Out: json.RawMessage(`{"pid":2}`)})
			case "flush":
				time.Sleep(5 * time.Millisecond) // the output was sent before
				_ = agent.Write(s, agent.Reply{})
			}
			_, _ = io.Copy(io.Discard, s)
		})), &spec)
		if err != nil {
			t.Fatal(err)
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Start(t.Context(), &sandbox.Command{Args: []string{"node"}, Files: []io.ReadWriteCloser{w}})
		if err != nil {
			t.Fatal(err)
		}
		p.(sandbox.Flusher).Flush()
		var held int
		err = kernfile.Control(r, func(fd int) (err error) { held, err = unix.IoctlGetInt(fd, unix.TIOCINQ); return err })
		if err != nil || held != size {
			t.Errorf("the pipe holds %d bytes, %v", held, err)
		}
		if err := errors.Join(s.Close(), r.Close(), w.Close()); err != nil {
			t.Error(err)
		}
	}
}

// A process that the agent does not end ends with the sandbox.
func TestKillIsIgnored(t *testing.T) {
	defer func(was time.Duration) { killTime = was }(killTime)
	killTime = 50 * time.Millisecond
	s, err := New(t.Context(), connect(t, operations(func(op string, s *mux.Stream) {
		if op == "start" {
			_ = agent.Write(s, agent.Reply{Out: json.RawMessage(`{"pid":2}`)})
		}
		_, _ = io.Copy(io.Discard, s)
	})), &spec)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Start(t.Context(), &sandbox.Command{Args: []string{"node"}})
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if exit, err := p.Wait(); exit.Signal != syscall.SIGKILL || !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("%+v, %v", exit, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzFrames sends any bytes as the answer to every operation.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(framed(`{"out":{"pid":2}}`) + framed(`{"denied":{}}`) + framed(`{"exit":{}}`)))
	f.Add([]byte(framed(`{"out":{}}`) + framed(`{"Entries":[`+entry+`],"Done":true}`)))
	f.Add([]byte(framed(`{"out":{}}`) + framed(`text`) + framed(``)))
	f.Add([]byte(framed(`{}`) + framed(`{"Path":"L2E=","Info":{"Name":"YQ=="}}`) + framed(`{"Done":true}`)))
	f.Add([]byte(framed(`{"out":{"listeners":2,"resolver":"192.0.2.1"}}`) + framed(`{"Peer":"192.0.2.1:53","Data":"YQ=="}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, operations(func(_ string, s *mux.Stream) {
			_, _ = s.Write(data)
			_ = s.CloseWrite()
			_, _ = io.Copy(io.Discard, s)
		}), 5*time.Millisecond)
	})
}
