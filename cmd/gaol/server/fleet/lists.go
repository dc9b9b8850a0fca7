package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/fleet/member"
	"gaol/cmd/gaol/server/tenant"
)

// lists are the fields with the lists of responses of which all nodes have a part, by path.
var lists = map[string]string{"/v1/sandboxes": "sandboxes", "/v1/snapshots": "snapshots", "/v1/images": "images"}

const (
	listTimeout = time.Second // for a node to answer
	maxList     = 8 << 20     // bytes of its answer
)

// element contains the fields that sort a list.
type element struct {
	Created time.Time `json:"created"`
	Name    string    `json:"name"`
	text    json.RawMessage
}

// serveList serves a list that is collected from all nodes.
func (f *Fleet) serveList(w http.ResponseWriter, r *http.Request, local http.Handler) {
	own := &api.Recorder{Most: math.MaxInt}
	local.ServeHTTP(own, r)
	if own.Status != http.StatusOK {
		maps.Copy(w.Header(), own.Header())
		w.WriteHeader(cmp.Or(own.Status, http.StatusOK))
		_, _ = w.Write(own.Body.Bytes()) // the client may have gone
		return
	}
	out, err := f.Merge(r.Context(), tenant.FromContext(r.Context()), r.URL.Path, own.Body.Bytes())
	respond(w, out, err)
}

// Merge adds the parts of other nodes to the object with a list that this node has for a path. It names nodes that did not answer in
// the field "missing".
func (f *Fleet) Merge(ctx context.Context, t *tenant.Tenant, path string, own json.RawMessage) (any, error) {
	field := lists[path]
	all, err := elementsOf(own, field)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var mu sync.Mutex
	var asked sync.WaitGroup
	missing := []string{}
	m := f.Member()
	for _, node := range m.Others() {
		asked.Go(func() {
			list, err := f.listFrom(ctx, t, node, path)
			mu.Lock()
			defer mu.Unlock()
			if all = append(all, list...); err != nil && m.Get(node).State != member.Dead {
				missing = append(missing, node)
			}
		})
	}
	asked.Wait()
	slices.SortFunc(all, func(a, b element) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name)) })
	if field != "sandboxes" { // several nodes can have copies
		all = slices.CompactFunc(all, func(a, b element) bool { return a.Name == b.Name })
	}
	list := make([]json.RawMessage, len(all))
	for i, e := range all {
		list[i] = e.text
	}
	out := map[string]any{field: list}
	if len(missing) > 0 {
		slices.Sort(missing)
		out["missing"] = missing
	}
	return out, nil
}

// listFrom returns the part of a list that another node has.
func (f *Fleet) listFrom(ctx context.Context, t *tenant.Tenant, node, path string) ([]element, error) {
	var text json.RawMessage
	if err := f.callAs(ctx, t, http.MethodGet, node, path, nil, into(&text, maxList)); err != nil {
		return nil, err
	}
	return elementsOf(text, lists[path])
}

// elementsOf returns the elements of the list in an object.
func elementsOf(text []byte, field string) ([]element, error) {
	var lists map[string]json.RawMessage
	if err := json.Unmarshal(text, &lists); err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(lists[field], &raw); err != nil {
		return nil, err
	}
	list := make([]element, len(raw))
	for i, text := range raw {
		list[i].text = text
		if err := json.Unmarshal(text, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}
