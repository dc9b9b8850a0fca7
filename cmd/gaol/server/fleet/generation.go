package fleet

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/fleet/identity"
	"gaol/cmd/gaol/server/fleet/member"
	"gaol/cmd/gaol/server/service"
)

// generation describes the servers of the fleet's engine. The one with the highest number is valid.
type generation struct {
	Number  int64    `json:"number"`            // 0: the first one
	Name    string   `json:"name,omitempty"`    // of its cluster and queues
	Members []server `json:"members,omitempty"` // none: one server, on the machine that has made the fleet
}

// server is one of the servers of a generation.
type server struct {
	Name    string `json:"name"`    // no other server has had it
	Address string `json:"address"` // of its node
}

// check returns why a generation of another node is not valid.
func (g *generation) check() error {
	invalid := g.Number > 0 && !identity.IsID(g.Name) || len(g.Members) > 1 && len(g.Members) != clusterSize
	for _, m := range g.Members {
		invalid = invalid || !identity.IsID(m.Name) // which is a part of a path
	}
	if invalid {
		return errGeneration
	}
	return nil
}

var errGeneration = service.Refuse(service.Invalid, "the description of the engine is not valid")

// ownEngine is a server of the engine on this machine.
type ownEngine struct {
	*engine.Server
	name  string // empty: it is the first one
	alone bool   // not in a cluster
	life  context.Context
	stop  context.CancelFunc
}

// end stops the server, and waits for its end. It may be nil.
func (e *ownEngine) end() {
	if e != nil {
		e.stop()
		<-e.Done()
	}
}

// Generation returns the valid generation.
func (f *Fleet) generation() generation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.Generation
}

// access returns what clients need to use the engine of a generation.
func (f *Fleet) access(g generation) engine.Access {
	return engine.Access{Secret: f.state.EngineToken, Generation: g.Name}
}

// engineDir is the folder of the files of the only server.
const engineDir = "engine"

// serverDir returns the folder of a server's files.
func (f *Fleet) serverDir(name string) string {
	if name != "" {
		name = "-" + name
	}
	return filepath.Join(f.Dir, engineDir+name)
}

// ownServer returns the name of this machine's server of a generation. Without its files it could not continue as that server.
func (f *Fleet) ownServer(g generation) (name string, ok bool) {
	for _, m := range g.Members {
		if _, err := os.Stat(f.serverDir(m.Name)); err == nil {
			return m.Name, true
		}
	}
	return "", len(g.Members) == 0 && f.Join == ""
}

// startServer starts a server of a generation.
func (f *Fleet) startServer(g generation, name string) (_ *ownEngine, err error) {
	e := &ownEngine{name: name, alone: len(g.Members) < clusterSize}
	e.life, e.stop = context.WithCancel(f.engineLife)
	defer func() {
		if err != nil {
			e.stop()
		}
	}()
	o := engine.Options{Program: f.Program, Dir: f.serverDir(name), Token: f.access(g).Token(), Log: f.Log}
	if !e.alone {
		o.Cluster = &engine.Cluster{Name: g.Name, Server: name}
	}
	for _, m := range g.Members {
		if m.Name == name {
			continue
		}
		address, err := f.openRoute(e.life, m.Address)
		if err != nil {
			return nil, err
		}
		o.Cluster.Routes = append(o.Cluster.Routes, address)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	e.Server, err = engine.Start(e.life, o)
	return e, err
}

// openRoute returns a loopback address whose connections lead to the engine of another node, until ctx ends.
func (f *Fleet) openRoute(ctx context.Context, node string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				err := engine.Tunnel(ctx, c, func(ctx context.Context) (net.Conn, error) { return f.dialNode(ctx, node, routeProtocol) })
				f.Log.Debug("the route to another engine has ended", "address", node, "err", err)
			}()
		}
	}()
	return l.Addr().String(), nil
}

// useEngine makes a server the own one.
func (f *Fleet) useEngine(e *ownEngine) {
	f.engine.Store(e)
	f.work.Go(func() {
		ctx, stop := context.WithCancel(f.life)
		defer stop()
		defer context.AfterFunc(e.life, stop)()
		e.Watch(ctx, func(ctx context.Context) error { return f.canary(ctx, e) })
	})
}

// canary writes to the engine. It returns an error only if the own server leads the bucket.
func (f *Fleet) canary(ctx context.Context, own *ownEngine) error {
	begin := time.Now()
	err := f.client.Put(ctx, engine.Config, "canary."+f.state.Machine, nil)
	f.metrics.canary.Set(time.Since(begin).Seconds())
	f.isolated.Store(err != nil)
	if err != nil && !own.alone && f.client.Leader(ctx, engine.Config) != own.name {
		return nil
	}
	return err
}

// useGeneration makes this node use a generation, unless it knows a later one.
func (f *Fleet) useGeneration(g generation) error {
	f.adopting.Lock()
	defer f.adopting.Unlock()
	before := f.generation().Name
	if later, err := f.store(g); err != nil || !later || f.life.Err() != nil {
		return err
	}
	if name, own := f.ownServer(g); !own || f.engine.Load() == nil || f.engine.Load().name != name {
		f.changeServer(g, name, own)
	}
	f.isolated.Store(false)
	if g.Name != before {
		f.client.Use(g.Name)
	}
	f.Log.Info("the fleet's engine has moved", "generation", g.Number, "own", f.engine.Load() != nil)
	f.clean()
	return nil
}

// changeServer ends the own server. If the node has one of a generation, it uses that.
//
// Preconditions: f.adopting is held.
func (f *Fleet) changeServer(g generation, name string, own bool) {
	f.engine.Swap(nil).end()
	e := f.pending.Swap(nil)
	if e != nil && (!own || e.name != name) {
		e.end()
		e = nil
	}
	if own {
		err := f.readAuthority()
		if err == nil && e == nil {
			e, err = f.startServer(g, name)
		}
		if err != nil {
			f.Log.Error("this machine's engine does not start", "err", err)
		}
	}
	if e != nil {
		f.useEngine(e)
	}
}

// store stores a generation, if it is later than the own one.
func (f *Fleet) store(g generation) (later bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.state.Generation
	if err := g.check(); err != nil || g.Number <= before.Number {
		return false, err
	}
	f.state.Generation = g
	if err := f.writeState(); err != nil {
		f.state.Generation = before
		return false, errors.Join(err, f.writeState())
	}
	return true, nil
}

// isBehind reports whether another node uses a later generation.
func (f *Fleet) isBehind() bool {
	own := f.generation().Number
	return slices.ContainsFunc(f.Member().All(), func(n member.Status) bool { return n.Generation > own })
}

// catchUp gets a later generation from other nodes with an engine and stores it. It does nothing unless this node runs a server of
// a cluster, which may have been replaced.
func (f *Fleet) catchUp(ctx context.Context) {
	node, err := identity.ReadNode(f.Dir)
	if name, own := f.ownServer(f.state.Generation); err != nil || !own || name == "" {
		return // the next steps of the start return the error
	}
	f.node.Store(node)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var asked sync.WaitGroup
	for _, address := range f.engineAddresses() {
		asked.Go(func() {
			_ = f.askGeneration(ctx, address, func(g generation) error { _, err := f.store(g); return err }) // which is logged
		})
	}
	asked.Wait()
	f.clean()
}

// clean removes the files of servers of other generations, and the authority from a machine that needs it no longer.
func (f *Fleet) clean() {
	g := f.generation()
	own, ok := f.ownServer(g)
	var err error
	if !ok {
		f.authority.Store(nil)
		err = identity.RemoveAuthority(f.Dir)
	}
	left, _ := filepath.Glob(f.serverDir("*")) // the pattern is valid
	if len(g.Members) > 0 && f.Join == "" {
		left = append(left, f.serverDir(""))
	}
	for _, dir := range left {
		if !ok || dir != f.serverDir(own) {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	if err != nil {
		f.Log.Error("remove the files of former engines", "err", err)
	}
}

// Protocols, by ALPN, of connections to the engine through the listener for nodes: of clients, and of other servers.
const (
	engineProtocol = "gaol-engine"
	routeProtocol  = "gaol-route"
)

// dialEngine connects to an engine: the own one, or that of another node. Nodes with several choose a random one.
func (f *Fleet) dialEngine(ctx context.Context) (net.Conn, error) {
	own := f.engine.Load()
	if own != nil && own.alone {
		return own.Dial(ctx)
	}
	failed := engine.ErrUnavailable
	addresses := f.engineAddresses()
	if own != nil {
		addresses = append(addresses, "")
	}
	rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	for _, address := range addresses {
		var c net.Conn
		if address == "" {
			c, failed = own.Dial(ctx)
		} else {
			c, failed = f.dialNode(ctx, address, engineProtocol)
		}
		if failed == nil {
			return c, nil
		}
	}
	return nil, failed
}

// dialNode connects to the engine of another node, which must not be dead.
func (f *Fleet) dialNode(ctx context.Context, address, protocol string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := (&tls.Dialer{Config: f.node.Load().Client("", protocol)}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s := c.(*tls.Conn).ConnectionState()
	if s.NegotiatedProtocol != protocol || f.isDead(s.PeerCertificates[0].Subject.CommonName) {
		return nil, errors.Join(fmt.Errorf("%s has no engine", address), c.Close())
	}
	return c, nil
}

// isDead reports whether a node is known to be dead.
func (f *Fleet) isDead(id string) bool {
	m := f.Member()
	return m != nil && m.IsDead(id)
}

// engineAddresses returns the addresses of other nodes with an engine, and that by which the node has joined.
func (f *Fleet) engineAddresses() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := append(slices.Clone(f.state.Engines), f.Join)
	for _, m := range f.state.Generation.Members {
		all = append(all, m.Address)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(a string) bool { return a == "" || a == f.Address })
}

// dialers returns functions that connect to the own engine, running or pending, by protocol.
func (f *Fleet) dialers() map[string]func(context.Context) (net.Conn, error) {
	all := map[string]func(context.Context) (net.Conn, error){}
	own := f.engine.Load()
	if own != nil {
		all[engineProtocol] = own.Dial
	}
	if e := cmp.Or(f.pending.Load(), own); e != nil && !e.alone {
		all[routeProtocol] = e.DialRoute
	}
	return all
}

// Protocols are the protocols of the listener for nodes beside HTTP.
func (f *Fleet) Protocols() map[string]func(*http.Server, *tls.Conn, http.Handler) {
	serve := func(_ *http.Server, c *tls.Conn, _ http.Handler) { f.serveTunnel(c) }
	return map[string]func(*http.Server, *tls.Conn, http.Handler){engineProtocol: serve, routeProtocol: serve}
}

// serveTunnel connects a node to the own engine. It closes c.
func (f *Fleet) serveTunnel(c *tls.Conn) {
	defer func() { _ = c.Close() }()
	s := c.ConnectionState()
	id, dial := identity.Peer(&s), f.dialers()[s.NegotiatedProtocol]
	if id == "" || dial == nil || f.isDead(id) {
		return
	}
	f.mu.Lock()
	f.tunnels[c] = id
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.tunnels, c)
	}()
	if err := engine.Tunnel(context.Background(), c, dial); err != nil {
		f.Log.Debug("a node's connection to the engine has ended", "peer", id, "err", err)
	}
}
