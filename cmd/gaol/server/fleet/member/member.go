package member

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gaol/cmd/gaol/server/fleet/engine"
)

// Member keeps a node in the fleet, and its table current, until its context ends.
type Member struct {
	*Table
	Options
	mu       sync.Mutex // of the record
	draining atomic.Bool
	changed  chan struct{} // the record
	current  atomic.Bool   // the table has all records
}

// Options are the options of [New].
type Options struct {
	Record Record
	Engine *engine.Client
	Log    *slog.Logger

	Probe  func(ctx context.Context, node Record) error // returns nil if a node can be reached directly, or [ErrNoContact]
	Load   func() Load                                  // of the own node
	Update func(*Record)                                // sets the fields of the own record about the engine
	Fenced func(why string)                             // is called in a goroutine when the own node is dead

	Changed func() // is called after each change of the table
}

// New returns a member that has not joined.
func New(o Options) *Member {
	o.Record.MinProtocol, o.Record.MaxProtocol = OldestProtocol, Protocol
	return &Member{Table: NewTable(o.Record.ID, o.Fenced), Options: o, changed: make(chan struct{}, 1)}
}

// retryEvery is how often what needs the engine is tried again.
const retryEvery = 500 * time.Millisecond

// Run keeps the node in the fleet until ctx ends.
func (m *Member) Run(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() { m.watch(ctx) })
	loops.Go(func() { m.renew(ctx) })
	loops.Go(func() { m.hint(ctx) })
	loops.Go(func() { m.bury(ctx) })
	loops.Wait()
}

// Leave deletes the node's record: it has ended in good order.
func (m *Member) Leave(ctx context.Context) error {
	return m.Engine.Delete(ctx, engine.Nodes, nodeKey+m.own)
}

// IsCurrent reports whether the table has had the records of all nodes.
func (m *Member) IsCurrent() bool { return m.current.Load() }

// Drain sets whether the node accepts new work.
func (m *Member) Drain(yes bool) {
	m.draining.Store(yes)
	select {
	case m.changed <- struct{}{}:
	default: // it is going to be written
	}
}

// IsDraining reports whether the node accepts no new work, as when it is dead.
func (m *Member) IsDraining() bool { return m.draining.Load() || m.IsDead(m.own) }

// watch applies the records of all nodes.
func (m *Member) watch(ctx context.Context) {
	for ; ctx.Err() == nil; engine.Sleep(ctx, retryEvery) {
		err := m.Engine.Watch(ctx, engine.Nodes, func(c engine.Change) {
			m.Apply(c.Key, c.Value)
			m.Changed()
		}, func() { m.current.Store(true) })
		if ctx.Err() == nil && m.current.Load() {
			m.Log.Warn("watch the fleet's nodes", "err", err)
		}
	}
}

// renew writes the record of the node, again and again. It does not bring a dead node back.
func (m *Member) renew(ctx context.Context) {
	for ctx.Err() == nil {
		wait := renewEvery
		if !m.current.Load() {
			wait = retryEvery
		} else if err := m.write(ctx); err != nil {
			m.Log.Debug("renew the node's record", "err", err)
			wait = retryEvery
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		case <-m.changed:
		}
	}
}

func (m *Member) write(ctx context.Context) error {
	if m.IsDead(m.own) {
		return ErrDead
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Record.Sequence++
	m.Record.Draining = m.draining.Load()
	m.Update(&m.Record)
	text, err := json.Marshal(m.Record)
	if err != nil {
		return err
	}
	return m.Engine.Put(ctx, engine.Nodes, nodeKey+m.own, text)
}

// loadSubject begins the subjects of hints.
const loadSubject = "load."

// hint sends the node's load, and receives that of the others.
func (m *Member) hint(ctx context.Context) {
	err := m.Engine.Subscribe(ctx, loadSubject+">", func(subject string, hint []byte) { m.Hint(subject[len(loadSubject):], hint) })
	if err != nil {
		m.Log.Error("the load of other nodes stays unknown", "err", err)
	}
	for engine.Sleep(ctx, hintEvery) {
		text, err := json.Marshal(m.Load())
		if err == nil {
			err = m.Engine.Publish(loadSubject+m.own, text)
		}
		if err != nil {
			m.Log.Debug("send the node's load", "err", err)
		}
	}
}

// probeTimeout bounds the attempt to reach a node that is silent.
const probeTimeout = 3 * time.Second

// bury declares nodes dead that are silent and cannot be reached, unless that is the fault of the own network.
func (m *Member) bury(ctx context.Context) {
	for engine.Sleep(ctx, hintEvery) {
		silent, _ := m.missed()
		failed := make([]error, len(silent))
		var probes sync.WaitGroup
		for i, node := range silent {
			probes.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, probeTimeout)
				defer cancel()
				failed[i] = m.Probe(ctx, node.Record)
			})
		}
		probes.Wait()
		still, steady := m.missed() // others were heard of meanwhile
		if !m.disconnect(silent, failed) || !steady || ctx.Err() != nil {
			continue
		}
		for i, node := range silent {
			if failed[i] == nil || !slices.ContainsFunc(still, func(s Status) bool { return s.ID == node.ID }) {
				continue
			}
			m.Log.Warn("a node is lost", "peer", node.ID, "err", failed[i])
			err := m.Bury(ctx, node.ID, Grave{Why: "it was silent, and node " + m.own + " could not reach it"})
			if err != nil && !errors.Is(err, engine.ErrExists) {
				m.Log.Warn("declare a node dead", "peer", node.ID, "err", err)
			}
		}
	}
}

// tombstoneLife is how long the id of a dead node is refused: longer than its certificate is valid.
const tombstoneLife = 7 * 24 * time.Hour

// Grave describes why a node is dead.
type Grave struct {
	Why     string `json:"why"`
	Removed bool   `json:"removed"` // by an operator: it does not get another id
}

// Bury declares a node dead. It returns [engine.ErrExists] if it is.
func (m *Member) Bury(ctx context.Context, id string, g Grave) error {
	text, err := json.Marshal(g)
	if err != nil {
		return err
	}
	if err := m.Engine.Create(ctx, engine.Nodes, deadKey+id, text, tombstoneLife); err != nil {
		return err
	}
	return m.Engine.Delete(ctx, engine.Nodes, nodeKey+id)
}

// IsLost reports whether a start of a node has ended. It asks the engine about this node, and about a node that is not in the table.
func (m *Member) IsLost(ctx context.Context, id, start string) (bool, error) {
	if id != m.own && m.Get(id).Start == start {
		return false, nil
	}
	var r Record
	text, _, err := m.Engine.Get(ctx, engine.Nodes, nodeKey+id)
	if err == nil {
		err = json.Unmarshal(text, &r)
	} else if errors.Is(err, engine.ErrNotFound) {
		err = nil
	}
	return err == nil && r.Start != start, err
}

// Grave returns why a node is dead, nil if it is not. It asks the engine.
func (m *Member) Grave(ctx context.Context, id string) (*Grave, error) {
	text, _, err := m.Engine.Get(ctx, engine.Nodes, deadKey+id)
	if errors.Is(err, engine.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	g := &Grave{}
	return g, json.Unmarshal(text, g)
}
