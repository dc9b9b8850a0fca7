package fleet

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/singleflight"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/fleet/identity"
	"gaol/cmd/gaol/server/fleet/member"
	"gaol/cmd/gaol/server/service"
)

// DefaultPort is the port on which nodes listen for each other.
const DefaultPort = "8641"

// Options are the options of [Start].
type Options struct {
	Dir     string // of the node's key and records, and of the engine's; see [Dir]
	Address string // on which it listens, and by which others reach it: host:port. Empty: see [Start].

	// Join is the address of any node of a fleet, and Token what gaol fleet token has printed. A machine that has joined before needs
	// no token. Without Join, the machine is one with an engine, and the first one makes the fleet.
	Join, Token string

	// External is an engine instead of that of a node. Its nodes sign their certificates with the authority in a file.
	External  engine.External
	Authority string

	Found   bool   // make a fleet, or continue as the machine that has made it
	Engines int    // 3: the machine that makes the fleet promotes its engine when there are three nodes
	Program string // nats-server; needed with Found, and on machines that get an engine
	Port    string // of the HTTP API by TCP; empty: there is none
	Version string
	Log     *slog.Logger // that of the [Fleet] adds the node, and the ids of requests: see [service.NewLog]
	Tracer  trace.Tracer // of requests to other nodes; may be nil

	// Reload is called when the files of [Pushed] have changed.
	Reload func()

	Processors int
	Memory     int64 // bytes
}

// InFleet reports whether the machine is one of a fleet.
func (o *Options) InFleet() bool { return o.Found || o.Join != "" || o.External.URLs != "" }

// Dir returns the folder of a fleet's files below the store of images.
func Dir(store string) string { return filepath.Join(store, "fleet") }

// Fleet is this machine's part of a fleet.
type Fleet struct {
	Options
	service   atomic.Pointer[service.Service] // nil until Use
	node      atomic.Pointer[identity.Node]
	member    atomic.Pointer[member.Member]
	authority atomic.Pointer[identity.Authority] // nil without an engine
	engine    atomic.Pointer[ownEngine]          // nil without one
	pending   atomic.Pointer[ownEngine]          // of a generation that is being made
	client    *engine.Client
	listener  net.Listener
	http      *http.Client // to other nodes

	life       context.Context    // of what keeps the node in the fleet
	stop       context.CancelFunc // ends it
	engineLife context.Context    // of engines
	stopEngine context.CancelFunc
	work       sync.WaitGroup

	metrics *metrics
	fetches singleflight.Group
	moved   sync.Map      // the nodes of sandboxes that have moved, by id
	adopted sync.Map      // ids of sandboxes that have moved to this start of the node
	uploads chan struct{} // has room for the copies that are sent at the same time
	again   atomic.Int64  // requests of other nodes that are being forwarded

	start string // names this start of the node in ids

	promoting sync.Mutex  // held by promote
	adopting  sync.Mutex  // held while the own server changes
	isolated  atomic.Bool // the last write to the engine has failed

	mu       sync.Mutex
	state    state
	tunnels  map[net.Conn]string // connections of nodes to the own engine
	madeWith identity.Token      // see [Fleet.FirstToken]
}

// state is the content of stateFile.
type state struct {
	Machine     string     `json:"machine"` // names its users to other nodes
	EngineToken string     `json:"engineToken"`
	Engines     []string   `json:"engines"` // addresses of nodes with an engine
	Generation  generation `json:"generation"`
}

const stateFile = "state.json"

// Start makes this machine a node of a fleet. It returns when others can reach it, but does not wait for the engine. Without an
// address the node listens on [DefaultPort] of all addresses, and is reached by the one from which it has joined or, if it makes a
// fleet, by the first of the machine that is not a loopback address.
func Start(ctx context.Context, o Options) (_ *Fleet, err error) {
	f := &Fleet{Options: o, metrics: newMetrics(), uploads: make(chan struct{}, maxUploads), tunnels: map[net.Conn]string{}, start: strings.ToLower(rand.Text()[:startLength])}
	f.Log = service.NewLog(o.Log, func() string {
		if n := f.node.Load(); n != nil {
			return n.ID
		}
		return ""
	})
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.life, f.stop = life, stop
	f.engineLife, f.stopEngine = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := f.readState(); err != nil {
		return nil, err
	}
	f.catchUp(ctx)
	var own *ownEngine
	if name, ok := f.ownServer(f.state.Generation); ok || o.External.URLs != "" {
		own, err = f.startEngine(name)
	} else {
		err = f.join(ctx)
	}
	f.engine.Store(own)
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	if err := f.listen(); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	f.http = &http.Client{Transport: f.transport()}
	if o.External.URLs != "" {
		f.client, err = o.External.Connect(f.ID(), f.Log)
	} else {
		f.client, err = engine.Connect(f.dialEngine, f.access(f.state.Generation), f.ID(), f.Log)
	}
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	joined := make(chan struct{})
	f.work.Go(func() { f.live(life, sync.OnceFunc(func() { close(joined) })) })
	<-joined // Member returns nil before
	f.work.Go(func() { f.renew(life) })
	f.work.Go(func() { f.watch(life, engine.Moved, f.applyMoved) })
	f.work.Go(func() { f.watch(life, engine.Config, f.applyFiles) })
	f.work.Go(func() { f.moveSandboxes(life) })
	if own != nil {
		f.useEngine(own)
	}
	if f.External.URLs != "" || own != nil && own.alone {
		f.work.Go(func() { f.prepare(life) })
	}
	if own != nil && own.alone {
		f.work.Go(func() { f.promoteWhenReady(life) })
	}
	return f, nil
}

// startEngine makes this machine a node by its authority, and starts its engine with a name, unless that is external. The first time, it
// makes the fleet.
func (f *Fleet) startEngine(name string) (*ownEngine, error) {
	var err error
	if f.External.URLs != "" {
		err = f.readExternalAuthority()
	} else if err = f.readAuthority(); errors.Is(err, fs.ErrNotExist) && name == "" {
		err = f.found()
	}
	if err != nil {
		return nil, err
	}
	node, err := identity.ReadNode(f.Dir)
	if err != nil || !node.CA.Equal(f.authority.Load().Cert) { // it is new, was off for a day, or in another fleet
		node, err = f.certify()
	}
	if err != nil {
		return nil, err
	}
	f.node.Store(node)
	if f.External.URLs != "" {
		return nil, f.writeState()
	}
	f.clean()
	return f.startServer(f.state.Generation, name)
}

// readState reads the state, or makes one.
func (f *Fleet) readState() error {
	path := filepath.Join(f.Dir, stateFile)
	text, err := flags.ReadFile(path, 1<<20, nil)
	if errors.Is(err, fs.ErrNotExist) {
		f.state.Machine = identity.NewID()
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &f.state)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (f *Fleet) writeState() error {
	text, err := json.Marshal(f.state)
	if err != nil {
		return err
	}
	return identity.WriteFile(f.Dir, stateFile, text)
}

// listen opens the listener for other nodes, and completes the address.
func (f *Fleet) listen() (err error) {
	on := f.Address
	if on == "" {
		on = ":" + DefaultPort
		f.Address = net.JoinHostPort(ownAddress(f.Join), DefaultPort)
	}
	f.listener, err = net.Listen("tcp", on)
	if err != nil {
		return err
	}
	if host, port, err := net.SplitHostPort(f.Address); err == nil && port == "0" { // of tests
		_, port, _ = net.SplitHostPort(f.listener.Addr().String())
		f.Address = net.JoinHostPort(host, port)
	}
	return nil
}

// ownAddress returns the local address of connections to a host. For an empty host it returns the first global unicast address. It
// sends no packets.
func ownAddress(host string) string {
	if host != "" {
		if c, err := net.Dial("udp", host); err == nil {
			defer func() { _ = c.Close() }()
			return c.LocalAddr().(*net.UDPAddr).IP.String()
		}
	}
	all, _ := net.InterfaceAddrs() // without any, the loopback address remains
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}

// ID returns the id of the node. It changes when the others have declared it dead.
func (f *Fleet) ID() string { return f.node.Load().ID }

// Member returns the node's view of the fleet.
func (f *Fleet) Member() *member.Member { return f.member.Load() }

// FirstToken returns a token for other machines if this one has made the fleet just now, and else an empty text.
func (f *Fleet) FirstToken() string {
	if f.madeWith.Secret == "" {
		return ""
	}
	return f.madeWith.String()
}

// live keeps the node in the fleet until ctx ends. When the others have declared it dead, it ends its sandboxes and begins again
// under a new id. It calls joined when there is a member.
func (f *Fleet) live(ctx context.Context, joined func()) {
	for {
		life, end := context.WithCancel(ctx)
		fenced := func(why string) {
			if life.Err() == nil {
				f.Log.Error("the fleet has declared this node dead: its sandboxes end", "reason", why)
			}
			if s := f.service.Load(); s != nil {
				s.Accept(false)
			}
			end()
		}
		m := member.New(member.Options{
			Record: member.Record{
				ID: f.ID(), Start: f.start, Machine: f.state.Machine, Address: f.Address, Port: f.Port, Version: f.Version,
				Processors: f.Processors, Memory: f.Memory,
			},
			Update: func(r *member.Record) { r.Engine, r.Generation = f.engine.Load() != nil, f.generation().Number },
			Engine: f.client, Log: f.Log, Probe: f.probe, Load: f.load,
			Fenced: fenced, Changed: f.remember,
		})
		f.member.Store(m)
		joined()
		var asking sync.WaitGroup
		asking.Go(func() { f.askOthers(life, fenced) })
		m.Run(life)
		end()
		asking.Wait()
		if ctx.Err() != nil {
			return
		}
		if s := f.service.Load(); s != nil {
			_ = s.EndSandboxes() // which is logged
		}
		if !f.becomeNew(ctx) {
			return
		}
		if s := f.service.Load(); s != nil {
			s.Accept(true)
		}
		f.http.CloseIdleConnections() // which have the former id
		f.Log.Info("the node is a new one")
	}
}

// Use makes the fleet serve requests by a service. Until then the node counts as busy.
func (f *Fleet) Use(s *service.Service) {
	f.shareQuotas(s.Quotas())
	f.service.Store(s)
	s.Metrics().Add(prometheus.CollectorFunc(f.collect))
	f.work.Go(func() { f.watch(f.life, engine.Names, f.applyName) })
}

// load returns how busy this machine is.
func (f *Fleet) load() member.Load {
	s := f.service.Load()
	if s == nil {
		return member.Load{Busy: 1}
	}
	return member.Load{Busy: s.Busy(), Sandboxes: s.Count()}
}

// retryEvery is how often something that needs another node is tried again.
const retryEvery = time.Second

// remember keeps the addresses of engines for the next start, and closes the tunnels of dead nodes.
func (f *Fleet) remember() {
	m := f.Member()
	var engines []string
	for _, n := range m.All() {
		if n.Engine {
			engines = append(engines, n.Address)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for c, id := range f.tunnels {
		if m.IsDead(id) {
			_ = c.Close()
		}
	}
	if len(engines) == 0 || slices.Equal(engines, f.state.Engines) {
		return
	}
	f.state.Engines = engines
	if err := f.writeState(); err != nil {
		f.Log.Warn("write the addresses of engines", "err", err)
	}
}

// prepare makes the engine's buckets, and stores the first token.
func (f *Fleet) prepare(ctx context.Context) {
	var last string
	for ; ctx.Err() == nil; engine.Sleep(ctx, retryEvery) {
		err := f.client.Prepare(ctx)
		if err == nil && f.madeWith.Secret != "" {
			if err = f.storeToken(ctx, f.madeWith); errors.Is(err, engine.ErrExists) {
				err = nil
			}
		}
		if err == nil {
			return
		}
		if text := err.Error(); text != last {
			f.Log.Warn("prepare the fleet's engine", "err", err)
			last = text
		}
	}
}

// watch calls changed with the keys of a bucket, and with each change, until ctx ends.
func (f *Fleet) watch(ctx context.Context, bucket string, changed func(engine.Change)) {
	for ; ctx.Err() == nil; engine.Sleep(ctx, retryEvery) {
		_ = f.client.Watch(ctx, bucket, changed, func() {}) // the engine is away
	}
}

// Engine returns the engine, as [batch.Options] wants it.
func (f *Fleet) Engine(context.Context, bool) (*engine.Client, error) { return f.client, nil }

// Listener returns the listener for other nodes, and its TLS configuration.
func (f *Fleet) Listener() (net.Listener, *tls.Config) {
	server := func() *tls.Config {
		return f.node.Load().Server(append(slices.Collect(maps.Keys(f.dialers())), "http/1.1")...)
	}
	config := server()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return server(), nil } // the node may have another id or engine now
	return f.listener, config
}

// Leave drains the node, deletes its record and closes the fleet.
func (f *Fleet) Leave(ctx context.Context) error {
	f.Member().Drain(true)
	defer f.close()
	f.stop()
	f.work.Wait()
	return f.Member().Leave(ctx)
}

// close closes everything that Start has opened.
func (f *Fleet) close() {
	f.stop()
	f.stopEngine()
	if f.listener != nil {
		_ = f.listener.Close()
	}
	if f.client != nil {
		f.client.Close()
	}
	f.engine.Load().end()
	f.pending.Load().end()
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.tunnels {
		_ = c.Close()
	}
}

// probe returns nil if a node answers.
func (f *Fleet) probe(ctx context.Context, r member.Record) error {
	err := f.call(ctx, http.MethodGet, r.ID, pingPath, nil, nil)
	if err == nil {
		return nil
	}
	if c, failed := net.DialTimeout("tcp", r.Address, dialTimeout); failed == nil {
		_ = c.Close() // nothing was written
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTimeout)
		defer cancel()
		err = f.call(again, http.MethodGet, r.ID, pingPath, nil, nil) // the network may have come back just now
	} else if !errors.Is(failed, syscall.ECONNREFUSED) {
		f.http.CloseIdleConnections() // which would hang
		err = fmt.Errorf("%w: %w", member.ErrNoContact, failed)
	}
	return err
}
