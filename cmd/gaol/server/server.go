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
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/mcpserver"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
)

// Options are the options of a [Server].
type Options struct {
	Settings *settings.Settings
	Tokens   *tenant.Tokens // of TCP; nil: there is no TCP
	Store    string
	Version  string
	Log      *slog.Logger

	// CgroupParent is the cgroup below which each tenant has one. Empty: "/gaol/tenants".
	CgroupParent string

	// SandboxTools adds the tools of package sandboxtools to MCP, and MCP replaces the tools of
	// all tenants in tests.
	SandboxTools bool
	MCP          func() *mcp.Server
}

// Server serves tenants on any number of listeners.
type Server struct {
	service *service.Service
	tokens  atomic.Pointer[tenant.Tokens]
	http    *http.Server
	mcp     *mcpserver.Server
	log     *slog.Logger

	connections *connections
	times       times
}

// maxHeader bounds the headers of a request in bytes.
const maxHeader = 32 << 10

// New returns a server that does not serve yet.
func New(o Options) *Server { return newServer(o, defaultTimes) }

func newServer(o Options, times times) *Server {
	s := &Server{
		times:   times,
		service: service.New(service.Options{Settings: o.Settings, Store: o.Store, Log: o.Log, CgroupParent: o.CgroupParent}),
		log:     o.Log,

		connections: newConnections(),
	}
	s.tokens.Store(o.Tokens)
	mux := http.NewServeMux()
	api.Register(mux, s.service, o.Version)
	s.addHealth(mux)
	s.mcp = mcpserver.New(mcpserver.Options{Service: s.service, Version: o.Version, Log: o.Log, SandboxTools: o.SandboxTools, New: o.MCP})
	mux.Handle("/mcp", s.mcp)
	s.http = &http.Server{
		Handler:           s.guard(api.WithPorts(s.service, withProblems(mux))),
		ReadHeaderTimeout: times.header,
		IdleTimeout:       times.idle,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(httpLog{o.Log}, "", 0),
		ConnContext:       connContext,
		ConnState:         s.connections.follow,
	}
	return s
}

// httpLog logs what [http.Server] reports: mostly what clients did wrong.
type httpLog struct{ *slog.Logger }

func (l httpLog) Write(text []byte) (int, error) {
	l.Debug("http", "err", string(text))
	return len(text), nil
}

// addHealth adds the paths by which an operator's tools see whether the server lives.
func (s *Server) addHealth(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.service.Draining() {
			api.WriteProblem(w, http.StatusServiceUnavailable, "the server is being stopped")
			return
		}
		fmt.Fprintln(w, "ok")
	})
}

// Serve serves a listener until Close: one of unix sockets, whose callers are local users, or
// another one, whose callers need tokens. With a configuration it serves TLS.
func (s *Server) Serve(l net.Listener, secure *tls.Config) error {
	l = &listener{l, s.connections, s.times.write}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	err := s.http.Serve(problemListener{l})
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

// Close stops accepting requests, waits for runs for as long as the settings say, ends the rest, and
// closes all sandboxes.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(s.service.Settings().DrainMs)*time.Millisecond)
	defer cancel()
	err := errors.Join(s.service.Close(ctx), s.mcp.Close())
	late, stop := context.WithTimeout(context.Background(), time.Second) // for the last responses
	defer stop()
	if s.http.Shutdown(late) != nil {
		_ = s.http.Close() // of connections that do not end
	}
	return err
}
