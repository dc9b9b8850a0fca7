package fleet

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"

	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/service"
)

// askOthers calls fenced when another node refuses this one as dead, and adopts later generations of the engine, while this node cannot
// write to the engine, or is behind others. Nodes with an engine refuse connections of dead nodes to it, which would learn nothing from the engine.
func (f *Fleet) askOthers(ctx context.Context, fenced func(why string)) {
	for engine.Sleep(ctx, retryEvery) {
		if f.client.Connected() && !f.isolated.Load() && !f.isBehind() {
			continue
		}
		addresses := f.engineAddresses()
		if others := f.Member().Others(); len(others) > 0 { // which may know the new addresses
			addresses = append(addresses, f.Member().Get(others[rand.IntN(len(others))]).Address)
		}
		for _, address := range addresses {
			if err := f.askGeneration(ctx, address, f.useGeneration); hasCode(err, service.Forbidden) {
				fenced(err.Error())
				return
			}
		}
	}
}

// askGeneration asks the node with an address for its generation, and calls use with that. It logs an error.
func (f *Fleet) askGeneration(ctx context.Context, address string, use func(generation) error) error {
	var g generation
	err := f.callAddress(ctx, http.MethodGet, address+enginePath, nil, &g)
	if err == nil {
		err = use(g)
	}
	if err != nil {
		f.Log.Debug("ask another node about the engine", "address", address, "err", err)
	}
	return err
}

// becomeNew gets a new id for a node that is dead. It returns false when ctx has ended. A node that was removed gets none: it forgets
// its certificate, so that it can join with a token at its next start.
func (f *Fleet) becomeNew(ctx context.Context) bool {
	for {
		err := f.renewOnce(ctx)
		if err == nil {
			return true
		}
		if hasCode(err, service.Forbidden) {
			f.dropEngine()
			f.Log.Error("the node gets no new id", "err", errors.Join(err, f.node.Load().Forget()))
			<-ctx.Done()
		}
		if !engine.Sleep(ctx, retryEvery) {
			return false
		}
	}
}

// dropEngine ends and removes the own server of several.
func (f *Fleet) dropEngine() {
	f.adopting.Lock()
	defer f.adopting.Unlock()
	if e := f.engine.Load(); e != nil && !e.alone {
		f.engine.Store(nil)
		e.end()
		_ = os.RemoveAll(f.serverDir(e.name)) // else the other files remain, too
		f.clean()
	}
}

// hasCode reports whether another node has refused a request with a code.
func hasCode(err error, code service.Code) bool {
	e, ok := errors.AsType[*service.Error](err)
	return ok && e.Code == code
}

// callEngines sends a request to nodes with an engine, by their addresses, until one of them serves or forbids it. Their ids may not
// be known: the table of nodes is empty while there is no engine.
func (f *Fleet) callEngines(ctx context.Context, method, path string, in, out any) error {
	failed := engine.ErrUnavailable
	for _, address := range f.engineAddresses() {
		if failed = f.callAddress(ctx, method, address+path, in, out); failed == nil || hasCode(failed, service.Forbidden) {
			break
		}
	}
	return failed
}

// callAddress sends a request to the node with an address, before the path of url.
func (f *Fleet) callAddress(ctx context.Context, method, url string, in, out any) error {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: f.node.Load().Client("", "http/1.1"), DisableKeepAlives: true}, Timeout: callTimeout}
	return send(ctx, client, method, url, "", in, into(out, maxMessage))
}
