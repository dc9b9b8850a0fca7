package fleet

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/fleet/identity"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime/requestjson"
)

// placed contains the fields of an input that decide where it can be served.
type placed struct {
	Image       string                  `json:"image"`
	Snapshot    string                  `json:"snapshot"`
	NodeModules requestjson.NodeModules `json:"nodeModules"`
	Mounts      json.RawMessage         `json:"mounts"`
	HostPorts   json.RawMessage         `json:"hostPorts"`
}

// keptName names a snapshot or an image of a tenant.
type keptName struct{ kind, name string }

// names returns the images and snapshots of an input that is not of the host. The default image is on all nodes.
func (in *placed) names() (list []keptName) {
	modules, _ := strings.CutPrefix(in.NodeModules.HostPath, "snapshot:")
	for _, n := range []keptName{{service.KeptImage, in.Image}, {service.KeptSnapshot, in.Snapshot}, {service.KeptSnapshot, modules}} {
		if n.name != "" {
			list = append(list, n)
		}
	}
	return list
}

// isOfHost reports whether an input uses folders or ports of the machine.
func (in *placed) isOfHost() bool {
	path := in.NodeModules.HostPath
	return path != "" && !strings.HasPrefix(path, "snapshot:") || in.Mounts != nil || in.HostPorts != nil
}

// placeNamed returns the node for work that names snapshots or images: this one, which gets missing ones from others. If it is
// draining, or that fails, it is a node that keeps the first of them.
func (f *Fleet) placeNamed(ctx context.Context, t *tenant.Tenant, in placed) string {
	for _, n := range in.names() {
		if f.service.Load().FindKept(n.kind, t, n.name) != nil {
			continue
		}
		if f.Member().IsDraining() {
			return cmp.Or(f.holder(ctx, t, n, nil), f.ID())
		}
		if err := f.fetch(ctx, t, n); err != nil {
			f.Log.WarnContext(ctx, "get a copy from another node", "kind", n.kind, "name", n.name, "tenant", t.Name, "err", err)
			return cmp.Or(f.holder(ctx, t, n, nil), f.ID())
		}
	}
	return f.ID()
}

// fetch gets a copy from any other node. If none keeps it, this node reports the error of the request.
func (f *Fleet) fetch(ctx context.Context, t *tenant.Tenant, n keptName) error {
	var failed error
	for tried := []string{}; ; {
		node := f.holder(ctx, t, n, tried)
		if node == "" {
			return failed
		}
		err := f.fetchFrom(ctx, t, n, node)
		if err == nil {
			return nil
		}
		tried, failed = append(tried, node), errors.Join(failed, err)
	}
}

// fetchTime bounds a copy.
const fetchTime = 10 * time.Minute

// fetchFrom gets a copy from a node, once for all requests that wait for it.
func (f *Fleet) fetchFrom(ctx context.Context, t *tenant.Tenant, n keptName, node string) error {
	_, err, _ := f.fetches.Do(n.kind+"/"+n.name+"/"+t.Name, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTime)
		defer cancel()
		var k service.Kept
		if err := f.ask(ctx, t, node, n, &k); err != nil {
			return nil, err
		}
		return nil, f.receive(ctx, t, n, k, node)
	})
	return err
}

// receive gets a copy with a known ID from a node.
func (f *Fleet) receive(ctx context.Context, t *tenant.Tenant, n keptName, k service.Kept, node string) error {
	return f.callAs(ctx, t, http.MethodGet, node, blobsPath+n.kind+"/"+url.PathEscape(k.ID), nil, func(r io.Reader) error {
		return f.service.Load().ReceiveKept(ctx, n.kind, t, n.name, k, r)
	})
}

// maxUploads is how many copies a node sends at the same time.
const maxUploads = 4

// serveBlob sends a snapshot or an image to another node.
func (f *Fleet) serveBlob(w http.ResponseWriter, r *http.Request) {
	select {
	case f.uploads <- struct{}{}:
		defer func() { <-f.uploads }()
	case <-r.Context().Done():
		return
	}
	if err := f.service.Load().SendKept(r.PathValue("kind"), r.PathValue("id"), w); err != nil {
		f.Log.WarnContext(r.Context(), "send a copy to another node", "err", err)
		panic(http.ErrAbortHandler) // the receiver must not take it for complete
	}
}

// servePull makes this node get a copy of a tenant's snapshot from the node that asks for it.
func (f *Fleet) servePull(w http.ResponseWriter, r *http.Request) {
	t, err := f.TenantOf(r)
	if n := (keptName{service.KeptSnapshot, r.FormValue("name")}); err == nil && f.service.Load().FindKept(n.kind, t, n.name) == nil {
		err = f.fetchFrom(r.Context(), t, n, identity.Peer(r.TLS))
	}
	respond(w, struct{}{}, err)
}

// serveKeeps reports to another node whether this node keeps a snapshot or an image.
func (f *Fleet) serveKeeps(w http.ResponseWriter, r *http.Request) {
	t, err := f.TenantOf(r)
	var k *service.Kept
	if err == nil {
		if k = f.service.Load().FindKept(r.FormValue("kind"), t, r.FormValue("name")); k == nil {
			err = service.Refuse(service.NotFound, "this node does not have it")
		}
	}
	respond(w, k, err)
}

// ask asks a node whether it keeps something.
func (f *Fleet) ask(ctx context.Context, t *tenant.Tenant, node string, n keptName, k *service.Kept) error {
	return f.callAs(ctx, t, http.MethodGet, node, keepsPath+"?"+url.Values{"kind": {n.kind}, "name": {n.name}}.Encode(), nil, into(k, maxMessage))
}

// holder returns another node with a copy that was not tried yet, or an empty text.
func (f *Fleet) holder(ctx context.Context, t *tenant.Tenant, n keptName, tried []string) string {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	nodes := slices.DeleteFunc(f.Member().Others(), func(id string) bool { return slices.Contains(tried, id) })
	answers := make(chan string, len(nodes))
	for _, node := range nodes {
		go func() {
			if f.ask(ctx, t, node, n, &service.Kept{}) != nil {
				node = ""
			}
			answers <- node
		}()
	}
	for range nodes {
		if node := <-answers; node != "" {
			return node
		}
	}
	return ""
}

var errNoCopy = service.Refuse(service.Unreachable, "no second node could take a copy of the snapshot")

// Copy implements [service.Peers].
func (f *Fleet) Copy(ctx context.Context, t *tenant.Tenant, name string) error {
	others := f.Member().Others()
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	for again, tries := len(others) > 0, copyTries; again && tries > 0; tries-- {
		again = false
		for _, node := range others {
			err := f.callAs(ctx, t, http.MethodPost, node, pullPath+"?"+url.Values{"name": {name}}.Encode(), nil, into(nil, maxMessage))
			if err == nil {
				return nil
			}
			f.Log.WarnContext(ctx, "give another node a copy", "peer", node, "snapshot", name, "tenant", t.Name, "err", err)
			again = again || hasCode(err, service.Conflict)
		}
		again = again && engine.Sleep(ctx, copyAgain)
	}
	if len(others) == 0 {
		return nil
	}
	return errNoCopy
}

// A node that refuses a copy, because its own request for the name is about to fail, is asked again.
const (
	copyAgain = 100 * time.Millisecond
	copyTries = 20
)

// Delete implements [service.Peers].
func (f *Fleet) Delete(ctx context.Context, kind string, t *tenant.Tenant, name string, own func() error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, _, recorded := f.client.Get(ctx, engine.Names, f.nameKey(t, name))
	if kind == service.KeptSnapshot && recorded != nil && !errors.Is(recorded, engine.ErrNotFound) {
		return recorded // without an engine, nothing is deleted
	}
	had := kind == service.KeptSnapshot && recorded == nil
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, node := range f.Member().Others() {
		asked.Go(func() {
			failed := f.callAs(ctx, t, http.MethodDelete, node, "/v1/"+kind+"s/"+url.PathEscape(name), nil, into(nil, maxMessage))
			mu.Lock()
			defer mu.Unlock()
			refused, ok := errors.AsType[*service.Error](failed)
			switch {
			case failed == nil:
				had = true
			case !ok: // the node may be lost
				f.Log.WarnContext(ctx, "delete a copy of another node", "peer", node, "kind", kind, "name", name, "err", failed)
			case refused.Code != service.NotFound:
				err = errors.Join(err, refused)
			}
		})
	}
	asked.Wait()
	if err == nil {
		err = own()
	}
	if hasCode(err, service.NotFound) && had {
		err = nil
	}
	if err == nil && kind == service.KeptSnapshot {
		err = f.Record(ctx, t, name, "")
	}
	return err
}

// claimed is the record of a name whose snapshot is being taken, and claimLife how long that may take.
const claimed, claimLife = "claimed", time.Hour

// nameKey is the key of the record of a tenant's snapshot. Its value is the snapshot's id.
func (f *Fleet) nameKey(t *tenant.Tenant, name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(f.NameOf(t) + "/" + name))
}

// Claim implements [service.Peers].
func (f *Fleet) Claim(ctx context.Context, t *tenant.Tenant, name string) error {
	if f.holder(ctx, t, keptName{service.KeptSnapshot, name}, nil) != "" { // a copy without a record
		return fs.ErrExist
	}
	return f.client.Create(ctx, engine.Names, f.nameKey(t, name), []byte(claimed), claimLife)
}

// Record implements [service.Peers].
func (f *Fleet) Record(ctx context.Context, t *tenant.Tenant, name, id string) error {
	if id == "" {
		return f.client.Delete(ctx, engine.Names, f.nameKey(t, name))
	}
	return f.client.Put(ctx, engine.Names, f.nameKey(t, name), []byte(id))
}

// applyName deletes the copy of a snapshot that was deleted, or taken anew, while this node was away. It tries again while a sandbox
// uses the copy.
func (f *Fleet) applyName(c engine.Change) {
	text, _ := base64.RawURLEncoding.DecodeString(c.Key) // an invalid key names nothing
	owner, name, _ := strings.Cut(string(text), "/")
	t, s, in := f.TenantNamed(owner), f.service.Load(), &requestjson.SnapshotName{Name: name}
	t.Forwarded = true
	isStale := func(id []byte) bool {
		k := s.FindKept(service.KeptSnapshot, t, in.Name)
		return k != nil && string(id) != k.ID && string(id) != claimed
	}
	f.work.Go(func() {
		for ok := isStale(c.Value); ok; ok = engine.Sleep(f.life, moveEvery) {
			id, _, err := f.client.Get(f.life, engine.Names, c.Key) // which may be another one now
			if err == nil || errors.Is(err, engine.ErrNotFound) {
				if !isStale(id) {
					return
				}
				_, err = s.DeleteSnapshot(f.life, &service.Call{Service: s, Tenant: t}, in)
			}
			f.Log.Info("delete a snapshot that was deleted while this node was away", "snapshot", in.Name, "tenant", t.Name, "err", err)
		}
	})
}
