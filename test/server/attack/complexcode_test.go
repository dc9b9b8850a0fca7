package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/test/server/servertest"
)

// A tenant sends code that takes a compiler years, to each operation that compiles. Each request ends, as
// its caller's fault, the server can be closed meanwhile, and another tenant's requests continue.
func TestComplexCode(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	attacker, neighbour := s.Client(t, mallory), s.Client(t, alice)
	evaluate := func() time.Duration {
		began := time.Now()
		res := servertest.Send(t, neighbour, http.MethodPost, "/v1/evaluate", map[string]any{"code": "let a: number = 41; a + 1"})
		res.Want(t, http.StatusOK)
		return time.Since(began)
	}
	median := func() time.Duration {
		var list []time.Duration
		for range 15 {
			list = append(list, evaluate())
		}
		slices.Sort(list)
		return list[len(list)/2]
	}
	evaluate() // starts the processes that stay warm
	alone := median()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var requests sync.WaitGroup
	for _, n := range []int{24, 60} {
		code := "x=" + strings.Repeat("a?(b):c=>d?", n) + "1"
		nested := "x=" + strings.Repeat("a?(b):c=>(", n) + "1" + strings.Repeat(")", n)
		for _, request := range []struct {
			path string
			body map[string]any
		}{
			{"/v1/run", map[string]any{"code": code, "name": "x.ts"}},
			{"/v1/evaluate", map[string]any{"code": code}},
			{"/v1/evaluate", map[string]any{"code": nested}},
			{"/api/sandbox", map[string]any{"files": []any{map[string]any{"path": "src/main.ts", "source": code}}}},
		} {
			requests.Go(func() { attack(ctx, t, attacker, request.path, request.body) })
		}
	}
	beside := median()
	t.Logf("median of a neighbour: %v alone, %v beside", alone, beside)
	if beside > 3*alone+time.Second/10 {
		t.Errorf("median of a neighbour: %v alone, %v beside", alone, beside)
	}
	requests.Wait()

	// A client that goes away, and a server that ends, do not wait for it.
	gone, leave := context.WithCancel(t.Context())
	body := map[string]any{"code": "x=" + strings.Repeat("a?(b):c=>d?", 60) + "1"}
	requests.Go(func() { attack(gone, t, attacker, "/v1/evaluate", body) })
	requests.Go(func() { attack(ctx, t, attacker, "/v1/evaluate", body) })
	evaluate()
	leave()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	cancel()
	requests.Wait()
}

// attack sends a request, which must not be answered as the server's fault.
func attack(ctx context.Context, t *testing.T, c *http.Client, path string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		t.Error(err)
		return
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gaol"+path, bytes.NewReader(text))
	if err != nil {
		t.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := c.Do(r)
	if err != nil {
		return // the server or the client has ended the connection
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusInternalServerError {
		t.Errorf("%s: %s", path, res.Status)
	}
}
