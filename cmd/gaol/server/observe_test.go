package server

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
)

// observed serves mux as a server does for a tenant, and returns the audit log when the server has
// ended.
func observed(t *testing.T, mux *http.ServeMux) (url string, end func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	f, err := audit.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	o := &observer{metrics: service.NewMetrics(), audit: &audit.Log{}, log: slog.New(slog.DiscardHandler)}
	if err := o.audit.Set(f); err != nil {
		t.Fatal(err)
	}
	attributed := o.attribute(mux)
	served := o.observe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attributed.ServeHTTP(w, r.WithContext(tenant.NewContext(r.Context(), &tenant.Tenant{Name: "token:t"})))
	}))
	var serving sync.WaitGroup // of upgraded connections, too, for which Close does not wait
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		served.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	return server.URL, func() string {
		server.Close()
		serving.Wait()
		if err := o.audit.Set(nil); err != nil {
			t.Error(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
}

// Observed handlers can upgrade connections and flush responses, and panics are logged.
func TestObservedHandlers(t *testing.T) {
	mux := http.NewServeMux()
	closed := make(chan struct{})
	mux.HandleFunc("GET /socket", func(w http.ResponseWriter, r *http.Request) {
		defer close(closed)
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		_, _, _ = c.Read(context.Background()) // until the client closes it
	})
	mux.HandleFunc("GET /flush", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("part"))
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("flush: %v", err)
		}
	})
	mux.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	url, end := observed(t, mux)

	c, _, err := websocket.Dial(t.Context(), strings.Replace(url, "http", "ws", 1)+"/socket", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.CloseNow()
	<-closed
	for _, path := range []string{"/flush", "/panic"} {
		if res, err := http.Get(url + path); err == nil {
			_ = res.Body.Close()
		}
	}
	http.DefaultClient.CloseIdleConnections()
	log := end()
	for _, want := range []string{`"action":"GET /socket",`, `"status":101}`, `"action":"GET /flush","bytesIn":0,"bytesOut":4,`, `"action":"GET /panic",`} {
		if !strings.Contains(log, want) {
			t.Errorf("no %s in the log:\n%s", want, log)
		}
	}
}
