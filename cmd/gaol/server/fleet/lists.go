package fleet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/fleet/member"
)

// listOf returns the field with the list of the response to a request, if all nodes have a part of it.
func listOf(r *http.Request) string {
	if r.Method != http.MethodGet {
		return ""
	}
	return map[string]string{"/v1/sandboxes": "sandboxes", "/v1/snapshots": "snapshots", "/v1/images": "images"}[r.URL.Path]
}

const (
	listTimeout = time.Second // for a node to answer
	maxList     = 8 << 20     // bytes of its answer
)

// element has the fields by which lists are sorted.
type element struct {
	Created time.Time `json:"created"`
	Name    string    `json:"name"`
	json.RawMessage
}

// serveList serves a list that is collected from all nodes. It names those that did not answer in the field "missing".
func (f *Fleet) serveList(w http.ResponseWriter, r *http.Request, local http.Handler, field string) {
	own := &recorder{header: http.Header{}}
	local.ServeHTTP(own, r)
	if own.status != http.StatusOK && own.status != 0 {
		own.copyTo(w)
		return
	}
	all, err := elementsOf(own.body.Bytes(), field)
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), listTimeout)
	defer cancel()
	var mu sync.Mutex
	var asked sync.WaitGroup
	missing := []string{}
	m := f.Member()
	for _, node := range m.Others() {
		asked.Go(func() {
			list, err := f.listFrom(ctx, r, node, field)
			mu.Lock()
			defer mu.Unlock()
			if all = append(all, list...); err != nil && m.Get(node).State != member.Dead {
				missing = append(missing, node)
			}
		})
	}
	asked.Wait()
	slices.SortFunc(all, func(a, b element) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name)) })
	list := make([]json.RawMessage, len(all))
	for i, e := range all {
		list[i] = e.RawMessage
	}
	out := map[string]any{field: list}
	if len(missing) > 0 {
		slices.Sort(missing)
		out["missing"] = missing
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // the client may have gone
}

// listFrom returns the part of a list that another node has.
func (f *Fleet) listFrom(ctx context.Context, r *http.Request, node, field string) ([]element, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+node+r.URL.RequestURI(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set(tenantHeader, f.nameOf(r))
	res, err := f.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxList))
	if err != nil {
		return nil, err
	}
	return elementsOf(text, field)
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
		var key struct {
			Created time.Time `json:"created"`
			Name    string    `json:"name"`
		}
		if err := json.Unmarshal(text, &key); err != nil {
			return nil, err
		}
		list[i] = element{key.Created, key.Name, text}
	}
	return list, nil
}

// recorder keeps a response in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *recorder) WriteHeader(status int) { w.status = cmp.Or(w.status, status) }

// Write implements [http.ResponseWriter].
func (w *recorder) Write(p []byte) (int, error) { return w.body.Write(p) }

// copyTo sends the response to a client.
func (w *recorder) copyTo(to http.ResponseWriter) {
	for name, values := range w.header {
		to.Header()[name] = values
	}
	to.WriteHeader(w.status)
	_, _ = to.Write(w.body.Bytes()) // the client may have gone
}
