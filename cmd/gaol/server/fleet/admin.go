package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/fleet/identity"
	"gaol/cmd/gaol/server/fleet/member"
	"gaol/cmd/gaol/server/service"
)

// NodeList is the response to GET /fleet/v1/nodes.
type NodeList struct {
	Own   string          `json:"own"` // the id of the node that has answered
	Nodes []member.Status `json:"nodes"`
}

// NewToken is the response to POST /fleet/v1/token.
type NewToken struct {
	Token   string `json:"token"`
	Address string `json:"address"` // of a node that can be joined
}

// AdminHandler serves the requests of gaol fleet, whose callers are administrators.
func (f *Fleet) AdminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /fleet/v1/nodes", func(w http.ResponseWriter, _ *http.Request) {
		list := NodeList{f.ID(), f.Member().All()}
		for i := range list.Nodes {
			if n := &list.Nodes[i]; n.ID == list.Own {
				n.Busy, n.Sandboxes = f.load().Busy, f.load().Sandboxes // others know what they were up to a second ago
			}
		}
		respond(w, list, nil)
	})
	mux.HandleFunc("POST /fleet/v1/token", func(w http.ResponseWriter, r *http.Request) {
		t := identity.NewToken(f.node.Load().CA)
		respond(w, NewToken{t.String(), f.Address}, f.storeToken(r.Context(), t))
	})
	mux.HandleFunc("POST /fleet/v1/push", f.push)
	mux.HandleFunc("POST /fleet/v1/promote", func(w http.ResponseWriter, r *http.Request) {
		p, err := f.promote(r.Context())
		respond(w, p, err)
	})
	mux.HandleFunc("GET /fleet/v1/targets", f.serveTargets)
	for name, do := range map[string]func(context.Context, string) error{
		"drain":   func(ctx context.Context, node string) error { return f.drain(ctx, node, true) },
		"undrain": func(ctx context.Context, node string) error { return f.drain(ctx, node, false) },
		"remove":  f.remove,
	} {
		mux.HandleFunc("POST /fleet/v1/nodes/{node}/"+name, func(w http.ResponseWriter, r *http.Request) {
			node := r.PathValue("node")
			err := do(r.Context(), node)
			respond(w, f.Member().Get(node), err)
		})
	}
	return mux
}

// receive reads an object of at most some bytes.
func receive(w http.ResponseWriter, r *http.Request, most int64, in any) error {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, most)).Decode(in); err != nil {
		return service.Refuse(service.Invalid, "read an object: %w", err)
	}
	return nil
}

// respond writes an object, or the problem of an error.
func respond(w http.ResponseWriter, out any, err error) {
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // the client may have gone
}

// drain sets whether a node accepts new work.
func (f *Fleet) drain(ctx context.Context, node string, yes bool) error {
	switch {
	case node == f.ID():
		f.Member().Drain(yes)
		return nil
	case f.Member().Get(node).Address == "":
		return service.Refuse(service.NotFound, "the fleet has no live node %q", node)
	}
	path := drainPath
	if !yes {
		path += "?off=1"
	}
	if err := f.call(ctx, http.MethodPost, node, path, nil, nil); err != nil {
		return forwardError(ctx, err)
	}
	return nil
}

// remove removes a node for ever: its certificate is refused, and its sandboxes end.
func (f *Fleet) remove(ctx context.Context, node string) error {
	if f.Member().Get(node).State == member.Unknown {
		return service.Refuse(service.NotFound, "the fleet has no node %q", node)
	}
	err := f.Member().Bury(ctx, node, member.Grave{Why: "an operator has removed it", Removed: true})
	if errors.Is(err, engine.ErrExists) {
		return nil
	}
	return err
}
