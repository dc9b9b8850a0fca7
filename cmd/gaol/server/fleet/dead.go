package fleet

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/service"
)

// askWhetherDead calls fenced when another node refuses this one as dead. Nodes with an engine refuse connections of dead nodes to
// it, which would learn nothing from the engine.
func (f *Fleet) askWhetherDead(ctx context.Context, fenced func(why string)) {
	if f.authority != nil {
		return
	}
	for engine.Sleep(ctx, retryEvery) {
		if f.client.Connected() {
			continue
		}
		if err := f.callEngines(ctx, http.MethodGet, pingPath, nil, nil); isForbidden(err) {
			fenced(err.Error())
			return
		}
	}
}

// becomeNew gets a new id for a node that is dead. It returns false when ctx has ended. A node that was removed gets none: it forgets
// its certificate, so that it can join with a token at its next start.
func (f *Fleet) becomeNew(ctx context.Context) bool {
	for {
		err := f.renewOnce(ctx)
		if err == nil {
			return true
		}
		if isForbidden(err) {
			f.Log.Error("the node gets no new id", "node", f.ID(), "err", errors.Join(err, f.node.Load().Forget()))
			<-ctx.Done()
		}
		if !engine.Sleep(ctx, retryEvery) {
			return false
		}
	}
}

// isForbidden reports whether another node has refused a request.
func isForbidden(err error) bool {
	e, ok := errors.AsType[*service.Error](err)
	return ok && e.Code == service.Forbidden
}

// callEngines sends a request to nodes with an engine, by their addresses, until one of them serves or forbids it. Their ids may not
// be known: the table of nodes is empty while there is no engine.
func (f *Fleet) callEngines(ctx context.Context, method, path string, in, out any) error {
	failed := engine.ErrUnavailable
	for _, address := range f.engineAddresses() {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: f.node.Load().Client("", "http/1.1"), DisableKeepAlives: true}, Timeout: callTimeout}
		if failed = send(ctx, client, method, address+path, "", in, into(out, maxMessage)); failed == nil || isForbidden(failed) {
			break
		}
	}
	return failed
}

// engineAddresses returns the addresses of nodes with an engine, and that by which the node has joined.
func (f *Fleet) engineAddresses() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Compact(slices.Concat(f.state.Engines, []string{f.Join}))
}
