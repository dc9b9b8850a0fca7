package servertest

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gaol/cmd/gaol/server"
	"gaol/cmd/gaol/server/fleet"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/test/harness"
)

// Options are the options of a [Server].
type Options struct {
	Settings func(*settings.Settings) // changes the defaults; may be nil
	Store    string                   // of images; empty: that of all tests
	Tokens   *tenant.Tokens           // with them, the server also serves TCP on a port of 127.0.0.1
	TLS      *tls.Config              // of TCP; nil: none
	Batch    bool                     // it has batch runs
}

// Server is a server in the process of the test.
type Server struct {
	*server.Server
	Socket  string // path of the unix socket, to which all users may connect
	Address string // of TCP; empty if there is none
	Log     *Log
	other   *server.Server // that has the sandboxes; nil: this one
}

// Reload replaces the settings and tokens of all nodes.
func (s *Server) Reload(set *settings.Settings, tokens *tenant.Tokens) {
	s.Server.Reload(set, tokens)
	if s.other != nil {
		s.other.Reload(set, tokens)
	}
}

// settings returns the settings of a server.
func (o Options) settings(t testing.TB) *settings.Settings {
	t.Helper()
	set, err := settings.Read("", settings.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	set.DrainMs = 1
	if o.Settings != nil {
		o.Settings(set)
	}
	return set
}

// Start starts a server that is closed when the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	set := o.settings(t)
	s := &Server{Socket: filepath.Join(publicDir(t), "gaol.sock"), Log: &Log{}}
	options := server.Options{Tokens: o.Tokens, Engine: o.engine(t), Version: "test", Options: service.Options{
		Settings: set, Store: cmp.Or(o.Store, os.Getenv(harness.StoreVar)), Cache: publicDir(t),
		Log: slog.New(slog.NewTextHandler(s.Log, nil)), CgroupParent: harness.Parent + "/tenants",
	}}
	other, serveNodes := JoinFleet(t, &options)
	s.Server, s.other = server.New(options), other
	serveNodes(s.Server)
	SetAudit(t, s.Server, set.AuditLog)
	served := make(chan error, 2)
	serving := 0
	serve := func(l net.Listener, secure *tls.Config) {
		serving++
		go func() { served <- s.Serve(l, secure) }()
	}
	unixListener := listen(t, "unix", s.Socket)
	if err := os.Chmod(s.Socket, 0o666); err != nil {
		t.Fatal(err)
	}
	serve(unixListener, nil)
	if o.Tokens != nil {
		l := listen(t, "tcp", "127.0.0.1:0")
		s.Address = l.Addr().String()
		serve(l, o.TLS)
	}
	t.Cleanup(func() {
		if err := s.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		for range serving {
			if err := <-served; err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

// engine returns the engine of batch runs, or nil.
func (o Options) engine(t testing.TB) server.Engine {
	t.Helper()
	if !o.Batch {
		return nil
	}
	program := harness.NATS(t)
	local, err := fleet.NewLocal(fleet.Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, func() (string, error) { return program, nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(local.Close)
	return local
}

func listen(t testing.TB, network, address string) net.Listener {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// publicDir makes a folder that all users may search, unlike that of t.TempDir.
func publicDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "gaol-server-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// PublicDir makes a folder that all users may search. It is removed when the test ends.
func PublicDir(t testing.TB) string { return publicDir(t) }

// Client returns a client that connects to the unix socket as a user.
func (s *Server) Client(t testing.TB, user User) *http.Client {
	t.Helper()
	transport := &http.Transport{
		DialContext:         func(context.Context, string, string) (net.Conn, error) { return Dial(s.Socket, user) },
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     time.Minute,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
