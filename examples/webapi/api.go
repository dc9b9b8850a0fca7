package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"time"

	"gaol/runtime"
)

const (
	maxBody    = 1 << 20          // bytes of a request
	maxTimeout = 10 * time.Second // of a program
	maxRuns    = 16               // at once; more requests get 503
)

// request is the body of both endpoints.
type request struct {
	Code      string `json:"code"`
	Stdin     string `json:"stdin"`
	TimeoutMs int    `json:"timeoutMs"`
}

// response is the result of a program.
type response struct {
	Stdout   string          `json:"stdout,omitempty"`
	Stderr   string          `json:"stderr,omitempty"`
	ExitCode int             `json:"exitCode"`
	Cause    runtime.Cause   `json:"cause,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"`
	Error    string          `json:"error,omitempty"`
	Denied   []string        `json:"denied,omitempty"` // by permissions: operation and target
}

// api holds unused sandboxes: each request gets its own, and closes it.
type api struct {
	pool *runtime.Pool
	runs chan struct{}
}

func newAPI(o runtime.Options) (*api, error) {
	o.Limits.Output = 256 << 10
	pool, err := runtime.NewPool(o, runtime.PoolOptions{Size: 4, Park: true})
	if err != nil {
		return nil, err
	}
	return &api{pool, make(chan struct{}, maxRuns)}, nil
}

func (a *api) close() error { return a.pool.Close() }

func (a *api) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /run", a.sandboxed(runProgram))
	mux.HandleFunc("POST /stream", a.sandboxed(streamProgram))
	return mux
}

// sandboxed reads a request and passes it on with a sandbox.
func (a *api) sandboxed(next func(http.ResponseWriter, *http.Request, *runtime.NodeRuntime, request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q request
		body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		body.DisallowUnknownFields()
		if err := body.Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case a.runs <- struct{}{}:
			defer func() { <-a.runs }()
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many programs are running", http.StatusServiceUnavailable)
			return
		}
		rt, err := a.pool.Get(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer func() {
			if err := rt.Close(); err != nil {
				log.Print(err)
			}
		}()
		if err := next(w, r, rt, q); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

func (q request) timeout() time.Duration {
	if d := time.Duration(q.TimeoutMs) * time.Millisecond; d > 0 && d < maxTimeout {
		return d
	}
	return maxTimeout
}

func newResponse(res *runtime.Result) response {
	r := response{Stdout: string(res.Stdout), Stderr: string(res.Stderr), ExitCode: res.ExitCode, Cause: res.Cause, Value: res.Value}
	if res.Error != nil {
		r.Error = res.Error.Error()
	}
	for _, d := range res.Denials {
		r.Denied = append(r.Denied, fmt.Sprintf("%s %s %s", d.Scope, d.Operation, d.Target))
	}
	return r
}

// writeEvent writes an event as server-sent events have it, and flushes it.
func writeEvent(w http.ResponseWriter, name string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, text); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}
