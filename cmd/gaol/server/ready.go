package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/settings"
)

const (
	// readyFor and unreadyFor are how long the result of a check is used: anyone may ask.
	readyFor, unreadyFor = 10 * time.Second, time.Second

	// checkTimeout bounds a check.
	checkTimeout = 10 * time.Second
)

// readiness remembers whether the server can run programs.
type readiness struct {
	check func(context.Context) error
	log   *slog.Logger

	mu    sync.Mutex
	until time.Time
	err   error
}

// get returns why the server cannot run programs, nil if it can. One caller checks, the others wait.
func (r *readiness) get() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.until) {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	r.err = r.check(ctx)
	valid := readyFor
	if r.err != nil {
		r.log.Error("the server is not ready", "err", r.err)
		valid = unreadyFor
	}
	r.until = time.Now().Add(valid)
	return r.err
}

// addHealth adds the paths by which an operator's tools see whether the server lives, and whether it
// can run programs.
func (s *Server) addHealth(mux *http.ServeMux) {
	ready := &readiness{check: s.service.Check, log: s.log}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.service.Draining() {
			api.WriteProblem(w, http.StatusServiceUnavailable, "the server is being stopped")
			return
		}
		if err := ready.get(); err != nil {
			api.WriteProblem(w, http.StatusServiceUnavailable, "the server cannot run programs; its log says why")
			return
		}
		fmt.Fprintln(w, "ok")
	})
}

// Drain stops accepting requests and waits for runs, for as long as the settings say or until now
// ends. It then ends the rest and closes all sandboxes.
func (s *Server) Drain(now context.Context) error {
	ctx, cancel := context.WithTimeout(now, time.Duration(s.service.Settings().DrainMs)*time.Millisecond)
	defer cancel()
	err := errors.Join(s.service.Close(ctx), s.mcp.Close())
	s.session.Close()
	late, stop := context.WithTimeout(context.Background(), time.Second) // for the last responses
	defer stop()
	if s.http.Shutdown(late) != nil {
		_ = s.http.Close() // of connections that do not end
	}
	return errors.Join(err, s.observer.audit.Set(nil))
}

// Alive returns when no part of the service is blocked. A watchdog ends a server in which it does not
// return.
func (s *Server) Alive() {
	s.service.Draining()
	s.service.Usage()
}

// SetAudit replaces the file of the audit log, which the server then owns; nil ends the log.
func (s *Server) SetAudit(f *audit.File) error { return s.observer.audit.Set(f) }

// Settings returns the settings.
func (s *Server) Settings() *settings.Settings { return s.service.Settings() }
