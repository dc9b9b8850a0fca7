package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/trace"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/batch"
	"gaol/cmd/gaol/server/fleet"
	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/mcpserver"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/session"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
)

// Options are the options of a [Server].
type Options struct {
	service.Options

	Tokens  *tenant.Tokens // of TCP; nil: there is no TCP
	Version string

	// SandboxTools adds the tools of package sandboxtools to MCP, and MCP replaces the tools of
	// all tenants in tests.
	SandboxTools bool
	MCP          func() *mcp.Server

	// Engine is the engine of batch runs. Nil: there are none.
	Engine Engine

	// Fleet connects the server to those of other machines. Nil: there are none.
	Fleet *fleet.Fleet

	// Tracer traces requests that have a tenant, or need none. It may be nil.
	Tracer trace.Tracer
}

// Engine is the engine of batch runs: see [batch.Options].
type Engine interface {
	Engine(ctx context.Context, start bool) (*engine.Client, error)
	NameOf(t *tenant.Tenant) string
	TenantNamed(name string) *tenant.Tenant
}

// Server serves tenants on any number of listeners.
type Server struct {
	service *service.Service
	session *session.Handler
	batch   *batch.Runs
	tokens  atomic.Pointer[tenant.Tokens]
	http    *http.Server
	mcp     *mcpserver.Server

	fleet           *fleet.Fleet // nil: no other machines
	nodes           *http.Server // of the listener for other nodes
	nodeConnections *connections

	connections *connections
	addresses   addresses
	times       times

	observer *observer
}

// maxHeader bounds the headers of a request in bytes.
const maxHeader = 32 << 10

// New returns a server that does not serve yet.
func New(o Options) *Server { return newServer(o, defaultTimes) }

func newServer(o Options, times times) *Server {
	if o.Fleet != nil {
		o.Peers = o.Fleet
	}
	s := &Server{times: times, service: service.New(o.Options), fleet: o.Fleet, connections: newConnections()}
	s.observer = &observer{metrics: s.service.Metrics(), audit: &audit.Log{}, log: s.service.Log(), tracer: o.Tracer, bodyTime: times.body}
	s.tokens.Store(o.Tokens)
	var router session.Router // nil without a fleet
	var mcpRouter mcpserver.Router
	if s.fleet != nil {
		router, mcpRouter = s.fleet, s.fleet
	}
	s.session = session.New(s.service, router)
	mux := newMux(s.service, s.session, o.Version)
	s.addHealth(mux)
	s.mcp = mcpserver.New(mcpserver.Options{Service: s.service, Version: o.Version, SandboxTools: o.SandboxTools, Router: mcpRouter, New: o.MCP})
	mux.Handle("/mcp", s.mcp)
	s.addMetrics(mux)
	own := s.observer.attribute(api.WithPorts(s.service, mux))
	all := own
	if s.fleet != nil {
		s.fleet.Use(s.service)
		s.addFleet(mux)
		s.nodes = s.newNodeServer(own)
		all = s.fleet.Route(own)
	}
	s.addBatch(o, all)
	s.http = s.newHTTPServer(s.guard(all), s.connections)
	return s
}

// newHTTPServer returns a server of observed requests, whose listeners count connections.
func (s *Server) newHTTPServer(h http.Handler, connections *connections) *http.Server {
	return &http.Server{
		Handler:           s.observed(h),
		ReadHeaderTimeout: s.times.header,
		IdleTimeout:       s.times.idle,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          httpLog(s.service),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, innerConn(c))
		},
		ConnState: connections.follow,
	}
}

// observed observes the requests of a handler, which have ids in a fleet.
func (s *Server) observed(h http.Handler) http.Handler {
	h = s.observer.observe(h)
	if s.fleet != nil {
		h = s.fleet.Identify(h)
	}
	return h
}

// addBatch gives the server its batch runs, which any node of a fleet serves with next.
func (s *Server) addBatch(o Options, next http.Handler) {
	b := batch.Options{Service: s.service}
	b.Serve = func(w http.ResponseWriter, r *http.Request, t *tenant.Tenant) {
		s.observed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serveAs(w, r, t, next) })).ServeHTTP(w, r)
	}
	if o.Engine != nil {
		b.Engine, b.NameOf, b.TenantOf = o.Engine.Engine, o.Engine.NameOf, o.Engine.TenantNamed
	}
	b.Knows = func(name string) bool { return s.tokens.Load().Knows(name) }
	if s.fleet != nil {
		b.Accepts = func() bool { return !s.fleet.Member().IsDraining() }
	}
	s.batch = batch.New(b)
	s.service.Batch = s.batch
}

// StartBatch begins to make batch runs that were submitted before.
func (s *Server) StartBatch(ctx context.Context) error { return s.batch.Start(ctx) }

// newMux returns a multiplexer of the API and its sessions.
func newMux(s *service.Service, sessions http.Handler, version string) *http.ServeMux {
	mux := http.NewServeMux()
	api.Register(mux, s, version)
	mux.Handle("GET /v1/session", sessions)
	return mux
}

// httpLog logs what [http.Server] reports: mostly what clients did wrong.
func httpLog(s *service.Service) *log.Logger {
	return slog.NewLogLogger(s.Log().Handler(), slog.LevelDebug)
}

// Serve serves a listener until Drain: one of unix sockets, whose callers are local users, or
// another one, whose callers need tokens. With a configuration it serves TLS.
func (s *Server) Serve(l net.Listener, secure *tls.Config) error {
	l = &listener{l, s.connections, s.times.write}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	return served(s.http.Serve(l))
}

// served returns the error of a server that has not been closed.
func served(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Reload replaces the settings and tokens. The sandboxes and what runs in them stay.
func (s *Server) Reload(o *settings.Settings, tokens *tenant.Tokens) {
	s.service.Set(o)
	s.tokens.Store(tokens)
}

const (
	// checkEvery is how long the result of a check is used: anyone may ask.
	checkEvery = 10 * time.Second

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
	if r.err = r.check(ctx); r.err != nil {
		r.log.Error("the server is not ready", "err", r.err)
	}
	r.until = time.Now().Add(checkEvery)
	return r.err
}

// addHealth adds the paths by which an operator's tools see whether the server lives, and whether it
// can run programs.
func (s *Server) addHealth(mux *http.ServeMux) {
	ready := &readiness{check: s.service.Check, log: s.service.Log()}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.service.Draining() {
			api.WriteProblem(w, http.StatusServiceUnavailable, "the server is being stopped")
			return
		}
		if err := ready.get(); err != nil {
			api.WriteProblem(w, http.StatusServiceUnavailable, "the server cannot run programs: see its log")
			return
		}
		fmt.Fprintln(w, "ok")
	})
}

// Drain stops accepting requests and waits for runs, for the time of the settings or until now
// ends. It then ends the rest and closes all sandboxes. Requests of other nodes for sandboxes that
// have moved are forwarded until it returns.
func (s *Server) Drain(now context.Context) error {
	ctx, cancel := context.WithTimeout(now, time.Duration(s.service.Settings().DrainMs)*time.Millisecond)
	defer cancel()
	s.batch.Stop()
	err := s.service.Close(ctx)
	if s.fleet != nil {
		s.fleet.WaitForwards(ctx)
	}
	s.batch.Close()
	s.mcp.Close()
	s.session.Close()
	late, stop := context.WithTimeout(context.Background(), time.Second) // for the last responses
	defer stop()
	for _, h := range []*http.Server{s.http, s.nodes} {
		if h != nil && h.Shutdown(late) != nil {
			_ = h.Close() // of connections that do not end
		}
	}
	return errors.Join(err, s.observer.audit.Set(nil))
}

// Alive returns when no part of the service is blocked. A watchdog ends a server in which it does not
// return.
func (s *Server) Alive() {
	s.service.Draining()
	s.service.Account(&tenant.Tenant{Name: settings.AnonymousTenant}).Limits()
}

// SetAudit replaces the file of the audit log, which the server then owns; nil ends the log.
func (s *Server) SetAudit(f *os.File) error { return s.observer.audit.Set(f) }

// Settings returns the settings.
func (s *Server) Settings() *settings.Settings { return s.service.Settings() }
