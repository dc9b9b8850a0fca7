package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/fleet/identity"
	"gaol/cmd/gaol/server/fleet/member"
	"gaol/cmd/gaol/server/service"
)

const (
	clusterSize = 3 // servers: one may fail

	// promoteTime bounds a promotion. Servers that it has started end after pendingTime, unless their node learns that it has succeeded.
	promoteTime = 5 * time.Minute
	pendingTime = 2 * promoteTime
)

// Promoted is the response to POST /fleet/v1/promote.
type Promoted struct {
	Engines []string `json:"engines"` // addresses of their nodes
}

// promotion is a step of a promotion that a node asks another one for.
type promotion struct {
	Generation generation `json:"generation"`

	// Server is the name of the server to start, with the authority, of a generation that is being made. Otherwise it is valid, unless
	// it is abandoned.
	Server    string `json:"server,omitempty"`
	Authority []byte `json:"authority,omitempty"`
	Abandoned bool   `json:"abandoned,omitempty"`
}

// servePromotion serves another node.
func (f *Fleet) servePromotion(w http.ResponseWriter, r *http.Request) {
	var in promotion
	err := receive(w, r, maxMessage, &in)
	switch {
	case err != nil:
	case in.Server != "":
		err = f.prepareServer(&in)
	case in.Abandoned:
		f.abandon()
	default:
		err = f.useGeneration(in.Generation)
	}
	respond(w, struct{}{}, err)
}

// promote replaces the only server of the engine by three on different nodes, or a lost one of three by a server of another node.
//
//	start three servers ── stop the only one ── copy its records ── store the new generation ── report it to all nodes
//	remove the lost one from the cluster ── start the new one ── wait for its copies ──┘
//
// Until the generation is stored, the former servers are valid: the only one starts again after a failure, and two of three continue.
// Nodes that miss the report ask others.
func (f *Fleet) promote(ctx context.Context) (*Promoted, error) {
	if !f.promoting.TryLock() {
		return nil, service.Refuse(service.Invalid, "the engine is being promoted")
	}
	defer f.promoting.Unlock()
	ctx, cancel := context.WithCancel(ctx) // without a deadline, each operation of NATS has its own
	defer cancel()
	defer time.AfterFunc(promoteTime, cancel).Stop()
	defer context.AfterFunc(f.life, cancel)()
	g, others, err := f.nextGeneration()
	if err != nil {
		return nil, err
	}
	if err = f.makeGeneration(ctx, g, others); err != nil {
		f.Log.ErrorContext(ctx, "promote the fleet's engine", "err", err)
		err = &service.Error{Code: service.EngineUnavailable, Err: fmt.Errorf("the engine is not promoted: %w", err)}
		f.abandon()
	} else {
		others = f.Member().Others()
	}
	var reports sync.WaitGroup
	for _, node := range others { // which otherwise ask later
		reports.Go(func() {
			failed := f.call(context.WithoutCancel(ctx), http.MethodPost, node, enginePath, promotion{Generation: g, Abandoned: err != nil}, nil)
			if failed != nil {
				f.Log.WarnContext(ctx, "report the engine's generation", "peer", node, "err", failed)
			}
		})
	}
	reports.Wait()
	if err != nil {
		return nil, err
	}
	p := &Promoted{}
	for _, m := range g.Members {
		p.Engines = append(p.Engines, m.Address)
	}
	return p, nil
}

// nextGeneration returns a new generation with this node, and the ids of its other nodes.
func (f *Fleet) nextGeneration() (g generation, others []string, err error) {
	var live []member.Status
	for _, n := range f.Member().All() {
		if n.State == member.Live && n.ID != f.ID() {
			live = append(live, n)
		}
	}
	now := f.generation()
	switch e := f.engine.Load(); {
	case e == nil:
		return g, nil, service.Refuse(service.Invalid, "this machine does not run the engine: see gaol fleet nodes")
	case f.isBehind():
		return g, nil, service.Refuse(service.Invalid, "this machine does not know the present engines yet: try again")
	case !e.alone:
		return f.replacement(now, live)
	case len(live)+1 < clusterSize || f.Member().IsDraining():
		return g, nil, service.Refuse(service.Invalid, "three engines need this machine and two others that are live and not draining")
	}
	mathrand.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
	g = generation{Number: now.Number + 1, Name: identity.NewID(), Members: []server{{identity.NewID(), f.Address}}}
	for _, n := range live[:clusterSize-1] {
		g.Members = append(g.Members, server{identity.NewID(), n.Address})
		others = append(others, n.ID)
	}
	return g, others, nil
}

// replacement returns the generation in which one of some nodes replaces a lost server of three, and the id of the node. A server is lost
// whose node is dead, has left, or has lost its files.
func (f *Fleet) replacement(now generation, nodes []member.Status) (g generation, others []string, err error) {
	all := f.Member().All()
	if slices.ContainsFunc(all, func(n member.Status) bool { return n.State == member.Live && n.Generation < now.Number }) {
		return g, nil, service.Refuse(service.EngineUnavailable, "a machine does not know the present engines yet: try again")
	}
	isLost := func(m server) bool {
		return !slices.ContainsFunc(all, func(n member.Status) bool { return n.Engine && n.Address == m.Address })
	}
	g = generation{Number: now.Number + 1, Name: now.Name, Members: slices.DeleteFunc(slices.Clone(now.Members), isLost)}
	nodes = slices.DeleteFunc(nodes, func(n member.Status) bool { return n.Engine })
	switch {
	case len(g.Members) == clusterSize:
		return g, nil, service.Refuse(service.Invalid, "the fleet has three engines: another machine replaces one that is dead, has left or was removed")
	case len(g.Members) < clusterSize-1:
		return g, nil, service.Refuse(service.EngineUnavailable, "two of three engines are lost: see What to back up in docs/fleet.md")
	case len(nodes) == 0:
		return g, nil, service.Refuse(service.Invalid, "a new engine needs another machine that is live and not draining")
	}
	n := nodes[mathrand.IntN(len(nodes))]
	g.Members = append(g.Members, server{identity.NewID(), n.Address})
	return g, []string{n.ID}, nil
}

// replaceServer removes the lost server from the cluster, starts the last one of a generation on another node, and waits until it has
// copies of everything.
func (f *Fleet) replaceServer(ctx context.Context, g generation, node string, authority []byte) error {
	access := f.access(g)
	access.System = true
	cluster, err := engine.Connect(f.dialEngine, access, f.ID(), f.Log)
	if err != nil {
		return err
	}
	defer cluster.Close()
	var names []string
	for _, m := range g.Members {
		names = append(names, m.Name)
	}
	added := names[clusterSize-1]
	if err := cluster.Retain(ctx, names[:clusterSize-1]); err != nil { // also servers of promotions that have failed
		return err
	}
	if err := f.prepareOn(ctx, node, promotion{Generation: g, Server: added, Authority: authority}); err != nil {
		return err
	}
	return f.client.WaitCopies(ctx, names)
}

// prepareOn makes another node start a server.
func (f *Fleet) prepareOn(ctx context.Context, node string, p promotion) error {
	if err := f.call(ctx, http.MethodPost, node, enginePath, p, nil); err != nil {
		return fmt.Errorf("node %s: %w", node, err)
	}
	return nil
}

// makeGeneration starts the servers of a generation that are new, gives them the records, and uses the generation.
func (f *Fleet) makeGeneration(ctx context.Context, g generation, others []string) error {
	authority, err := f.authority.Load().MarshalText()
	if err != nil {
		return err
	}
	if g.Name != f.generation().Name {
		return f.replaceAll(ctx, g, others, authority)
	}
	if err := f.replaceServer(ctx, g, others[0], authority); err != nil {
		return err
	}
	return f.useNew(g)
}

// useNew uses a generation that this node has made.
func (f *Fleet) useNew(g generation) error {
	err := f.useGeneration(g)
	if err == nil && !slices.Equal(f.generation().Members, g.Members) {
		err = errors.New("a later generation is valid")
	}
	return err
}

// replaceAll starts the servers of a generation, copies the records of the only server to them, and uses them.
func (f *Fleet) replaceAll(ctx context.Context, g generation, others []string, authority []byte) error {
	for i, node := range others {
		if err := f.prepareOn(ctx, node, promotion{Generation: g, Server: g.Members[i+1].Name, Authority: authority}); err != nil {
			return err
		}
	}
	if err := f.startPending(g, g.Members[0].Name); err != nil {
		return err
	}
	access := f.access(g)
	access.Copies = clusterSize
	to, err := engine.Connect(f.pending.Load().Dial, access, f.ID(), f.Log)
	if err != nil {
		return err
	}
	defer to.Close()
	for { // until the servers are a cluster
		err := to.Prepare(ctx)
		if err == nil {
			break
		} else if !engine.Sleep(ctx, retryEvery) {
			return err
		}
		f.Log.Debug("prepare the new engine", "err", err)
	}
	old := f.engine.Swap(nil)
	old.end()
	err = f.copyTo(ctx, to, old.name)
	if err == nil {
		err = f.useNew(g)
	}
	if f.engine.Load() == nil {
		f.work.Go(func() { f.restoreEngine(old.name) })
	}
	return err
}

// copyTo copies all records of the only server, which other clients cannot use meanwhile.
//
// Preconditions: it has ended.
func (f *Fleet) copyTo(ctx context.Context, to *engine.Client, server string) error {
	access := engine.Access{Secret: rand.Text(), Generation: f.generation().Name}
	life, stop := context.WithCancel(ctx)
	s, err := engine.Start(life, engine.Options{Program: f.Program, Dir: f.serverDir(server), Token: access.Token(), Log: f.Log})
	if err != nil {
		stop()
		return err
	}
	defer func() { stop(); <-s.Done() }()
	from, err := engine.Connect(s.Dial, access, f.ID(), f.Log)
	if err != nil {
		return err
	}
	defer from.Close()
	return to.Copy(ctx, from)
}

// restoreEngine starts the only server again after a failed promotion.
func (f *Fleet) restoreEngine(name string) {
	for f.life.Err() == nil {
		e, err := f.startServer(f.generation(), name)
		if err == nil {
			f.useEngine(e)
			return
		}
		f.Log.Error("start the fleet's engine again", "err", err)
		engine.Sleep(f.life, retryEvery)
	}
}

// startPending starts a server of a generation that is being made.
func (f *Fleet) startPending(g generation, name string) error {
	f.adopting.Lock()
	defer f.adopting.Unlock()
	f.pending.Swap(nil).end()
	e, err := f.startServer(g, name)
	if err != nil {
		return err
	}
	f.pending.Store(e)
	time.AfterFunc(pendingTime, func() {
		if f.pending.CompareAndSwap(e, nil) {
			e.end()
		}
	})
	return nil
}

// abandon ends the server of a generation that is not made.
func (f *Fleet) abandon() {
	f.adopting.Lock()
	defer f.adopting.Unlock()
	f.pending.Swap(nil).end()
	f.clean()
}

// prepareServer starts a server of a generation that is being made.
func (f *Fleet) prepareServer(in *promotion) error {
	authority, err := identity.ParseAuthority(in.Authority)
	g := &in.Generation
	switch {
	case err != nil || identity.Fingerprint(authority.Cert) != identity.Fingerprint(f.node.Load().CA),
		g.check() != nil || g.Number <= f.generation().Number,
		!slices.ContainsFunc(g.Members, func(m server) bool { return m.Name == in.Server }):
		return errGeneration
	case f.engine.Load() != nil:
		return service.Refuse(service.Invalid, "this node runs an engine")
	case f.Program == "":
		return service.Refuse(service.Invalid, "this machine lacks nats-server beside gaol")
	}
	f.abandon() // an earlier one
	if err := authority.Write(f.Dir); err != nil {
		return err
	}
	return f.startPending(*g, in.Server)
}

// promoteEvery is the time between attempts to promote the engine automatically.
const promoteEvery = 10 * time.Second

// promoteWhenReady promotes the engine when there are enough nodes, if the options want that.
func (f *Fleet) promoteWhenReady(ctx context.Context) {
	for f.Engines == clusterSize && len(f.generation().Members) < clusterSize && engine.Sleep(ctx, promoteEvery) {
		if _, _, err := f.nextGeneration(); err != nil {
			continue
		}
		if _, err := f.promote(ctx); err != nil {
			engine.Sleep(ctx, time.Minute)
		}
	}
}
