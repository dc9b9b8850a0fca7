package attack

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"gaol/test/server/servertest"
	"gaol/test/tier"
)

// A tenant sends code that takes a compiler years, to each operation that compiles. Each request ends, as
// its caller's fault, the server can be closed meanwhile, and another tenant's requests continue: TestNeighbour
// measures how fast.
func TestComplexCodeOfTenant(t *testing.T) {
	tier.Soak(t)
	s := servertest.Start(t, servertest.Options{})
	attacker, neighbour := s.Client(t, mallory), s.Client(t, alice)
	evaluate := func() {
		res := servertest.Send(t, neighbour, http.MethodPost, "/v1/evaluate", map[string]any{"code": "let a: number = 41; a + 1"})
		res.Want(t, http.StatusOK)
	}
	evaluate() // starts the processes that stay warm

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var requests sync.WaitGroup
	for _, request := range complexCode() {
		requests.Go(func() { attack(ctx, t, attacker, request.path, request.body) })
	}
	for range samples {
		evaluate()
	}
	requests.Wait()

	// A client that goes away, and a server that ends, do not wait for it.
	gone, leave := context.WithCancel(t.Context())
	body := map[string]any{"code": "x=" + strings.Repeat("a?(b):c=>d?", 60) + "1"}
	requests.Go(func() { attack(gone, t, attacker, "/v1/evaluate", body) })
	requests.Go(func() { attack(ctx, t, attacker, "/v1/evaluate", body) })
	evaluate()
	leave()
	if err := s.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	cancel()
	requests.Wait()
}

// request is a request to a server.
type request struct {
	path string
	body map[string]any
}

// complexCode are requests with code that takes a compiler minutes, or years.
func complexCode() (all []request) {
	for _, n := range []int{24, 60} {
		code := "x=" + strings.Repeat("a?(b):c=>d?", n) + "1"
		nested := "x=" + strings.Repeat("a?(b):c=>(", n) + "1" + strings.Repeat(")", n)
		all = append(all,
			request{"/v1/run", map[string]any{"code": code, "name": "x.ts"}},
			request{"/v1/evaluate", map[string]any{"code": code}},
			request{"/v1/evaluate", map[string]any{"code": nested}},
			request{"/api/sandbox", map[string]any{"files": []any{map[string]any{"path": "src/main.ts", "source": code}}}})
	}
	return all
}

// attack sends a request, which must not be answered as the server's fault.
func attack(ctx context.Context, t *testing.T, c *http.Client, path string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		t.Error(err)
		return
	}
	status, reply, err := post(ctx, c, path, string(text))
	if err == nil && isServersFault(status, reply) { // without a response, the server or the client has ended the connection
		t.Errorf("%s: %d %s", path, status, reply)
	}
}
