package fleet

import (
	"context"
	"net/http"
	"strings"
	"time"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/fleet/identity"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
)

// applyMoved keeps the node of a sandbox that has moved.
func (f *Fleet) applyMoved(c engine.Change) {
	if identity.IsID(string(c.Value)) {
		f.moved.Store(c.Key, string(c.Value))
	} else {
		f.moved.Delete(c.Key)
	}
}

// movedTo returns the node to which a sandbox has moved, empty if it is where it was created.
func (f *Fleet) movedTo(sandbox string) string {
	node, _ := f.moved.Load(sandbox)
	id, _ := node.(string)
	return id
}

// moveEvery is how often a draining node tries to move the sandboxes that are left.
const moveEvery = 2 * time.Second

// moveSandboxes moves the sandboxes of this node while it is draining, until ctx ends.
func (f *Fleet) moveSandboxes(ctx context.Context) {
	for last := ""; ctx.Err() == nil; engine.Sleep(ctx, moveEvery) {
		if m, s := f.Member(), f.service.Load(); m != nil && s != nil && m.IsDraining() && !m.IsDead(f.ID()) && f.client.Connected() && m.Pick(1, true) != "" {
			if err := s.Move(ctx, f.give); err != nil && err.Error() != last {
				last = err.Error()
				f.Log.Warn("sandboxes stay for now", "err", err)
			}
		}
	}
}

// give gives a sandbox to another node.
func (f *Fleet) give(ctx context.Context, t *tenant.Tenant, m *service.Moved) error {
	node := f.Member().Pick(1, true)
	if node == "" {
		return errNoNode
	}
	late, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	err := f.callAs(late, t, http.MethodPost, node, adoptPath, m, into(nil, maxMessage))
	if err == nil {
		err = f.recordMove(ctx, m.ID, node)
	}
	if err != nil {
		_ = f.callAs(ctx, t, http.MethodDelete, node, "/v1/sandboxes/"+m.ID, nil, into(nil, maxMessage)) // otherwise it expires there
		return err
	}
	f.metrics.moves.Inc()
	f.Log.Info("a sandbox has moved", "sandbox", m.ID, "peer", node)
	return nil
}

// recordMove reports to all nodes where a sandbox is. If the engine does not answer, it reports that the sandbox is still here, because
// they may have learnt the contrary.
func (f *Fleet) recordMove(ctx context.Context, sandbox, node string) error {
	late, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	err := f.putMoved(late, sandbox, node)
	if err != nil && ctx.Err() == nil {
		f.work.Go(func() {
			here, leave := f.service.Load().Enter(f.life, sandbox) // after this move, and before others
			defer leave()
			if here {
				_ = f.putMoved(f.life, sandbox, f.ID()) // fails when the server ends
			}
		})
	}
	return err
}

// recordTime bounds the time in which the requests about a sandbox wait for the engine.
const recordTime = 3 * time.Second

// putMoved stores the node of a sandbox. It tries until ctx ends.
func (f *Fleet) putMoved(ctx context.Context, sandbox, node string) error {
	for {
		err := f.client.Put(ctx, engine.Moved, sandbox, []byte(node))
		if err == nil {
			f.moved.Store(sandbox, node)
			return nil
		} else if !engine.Sleep(ctx, retryEvery) {
			return err
		}
	}
}

// maxAdopted bounds the description of a sandbox in bytes.
const maxAdopted = 1 << 20

// serveAdopt takes over a sandbox of the node that asks.
func (f *Fleet) serveAdopt(w http.ResponseWriter, r *http.Request) {
	from := identity.Peer(r.TLS)
	t, err := f.TenantOf(r)
	var m service.Moved
	if err == nil {
		err = receive(w, r, maxAdopted, &m)
	}
	if err == nil {
		err = f.adopt(r.Context(), t, from, &m)
	}
	respond(w, struct{}{}, err)
}

func (f *Fleet) adopt(ctx context.Context, t *tenant.Tenant, from string, m *service.Moved) error {
	if node, _ := parseID(m.ID); node == "" || !strings.HasPrefix(m.Stored, service.MovedPrefix) {
		return service.Refuse(service.Invalid, "%q is not a valid id of a sandbox, or %q not a valid name", m.ID, m.Stored)
	}
	f.service.Load().Disown(m.ID) // of an earlier attempt
	in := placed{Image: m.Request.Image, NodeModules: m.Request.NodeModules}
	for _, n := range in.names() {
		if f.service.Load().FindKept(n.kind, t, n.name) == nil {
			if err := f.fetchFrom(ctx, t, n, from); err != nil {
				return err
			}
		}
	}
	if err := f.receive(ctx, t, keptName{service.KeptSnapshot, m.Stored}, service.Kept{ID: m.Snapshot}, from); err != nil {
		return err
	}
	f.adopted.Store(m.ID, true)
	return f.service.Load().Adopt(ctx, t, m)
}

// enter returns the node of a sandbox, which stays there until leave is called if it is this one. It waits while the sandbox moves.
// What another node has forwarded is for this one, unless the sandbox has moved.
func (f *Fleet) enter(ctx context.Context, t *tenant.Tenant, sandbox string) (node string, leave func(), err error) {
	here, leave := f.service.Load().Enter(ctx, sandbox)
	if t != nil && t.Forwarded && (here || f.movedTo(sandbox) == "") {
		return f.ID(), leave, nil
	}
	if node, err = f.Owner(sandbox); err != nil {
		leave()
	}
	return node, leave, err
}

// RouteSandbox serves the requests about a sandbox that is elsewhere there, and others with local.
func (f *Fleet) RouteSandbox(local http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.Path, "/v1/sandboxes/")
		if !ok {
			local.ServeHTTP(w, r)
			return
		}
		id, _, _ := strings.Cut(rest, "/")
		node, leave, err := f.enter(r.Context(), tenant.Lookup(r.Context()), id)
		if err != nil {
			api.ProblemOf(err).Write(w)
			return
		}
		defer leave()
		if node == f.ID() {
			local.ServeHTTP(w, r)
			return
		}
		f.Forward(w, r, node)
	})
}
