package main

import (
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"gaol/test/internettest"
)

// host is the name of all servers, and address its address.
const host = "api.example.com"

var address = netip.MustParseAddr("93.184.215.14")

// checkOnInternet compares the programs that need servers.
func (s settings) checkOnInternet() (failed int, err error) {
	err = inScope(func(t *scope) error {
		internettest.ServeNames(t, map[string][]netip.Addr{host: {address}})
		ca := internettest.NewAuthority(t)
		serveWeb(t, ca)
		startPostgres(t, ca)
		startRedis(t, ca)
		failed, err = s.compareAll("test/packages/internet", ca.File)
		return err
	})
	return failed, err
}

// scope owns what one call of inScope opens. It implements internettest.T.
type scope struct{ cleanups []func() }

// fatal is what Fatal panics with.
type fatal struct{ error }

// inScope calls f, closes what it has opened, and returns its error or that of Fatal.
func inScope(f func(*scope) error) (err error) {
	t := new(scope)
	defer func() {
		p := recover()
		for i := len(t.cleanups) - 1; i >= 0; i-- {
			t.cleanups[i]()
		}
		if failed, ok := p.(fatal); ok {
			err = failed
		} else if p != nil {
			panic(p)
		}
	}()
	return f(t)
}

func (t *scope) Helper()          {}
func (t *scope) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *scope) Fatal(args ...any) {
	panic(fatal{fmt.Errorf("%s", fmt.Sprint(args...))})
}

// TempDir makes a folder that all users can enter.
func (t *scope) TempDir() string {
	dir, err := os.MkdirTemp("", "gaol-packages-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serveWeb serves HTTP/1 on port 80, and HTTP/2, too, on 443.
func serveWeb(t *scope, ca *internettest.Authority) {
	log := log.New(io.Discard, "", 0) // clients that do not trust the authority
	server := &http.Server{Handler: newWeb(), ErrorLog: log, TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{ca.Certificate(t, host)},
		NextProtos:   []string{"h2", "http/1.1"}, // which ServeTLS adds too late
	}}
	var serving sync.WaitGroup
	for _, port := range []uint16{80, 443} {
		l, err := net.Listen("tcp", netip.AddrPortFrom(address, port).String())
		if err != nil {
			t.Fatal(err)
		}
		serving.Go(func() {
			if port == 80 {
				_ = server.Serve(l)
			} else {
				_ = server.ServeTLS(l, "", "")
			}
		})
	}
	t.Cleanup(func() { _ = server.Close(); serving.Wait() })
}

func newWeb() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", serveEcho)
	mux.HandleFunc("/gzip", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, strings.Repeat("compressed ", 10000))
		_ = z.Close()
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/here", http.StatusFound) })
	mux.HandleFunc("/here", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })
	mux.HandleFunc("/wait", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/stream", func(w http.ResponseWriter, _ *http.Request) {
		for range 500 {
			_, _ = w.Write(make([]byte, 10000))
		}
	})
	mux.HandleFunc("/socket", serveSocket)
	return mux
}

// serveEcho describes the request.
func serveEcho(w http.ResponseWriter, r *http.Request) {
	n, _ := io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"method": r.Method, "target": r.RequestURI, "proto": r.Proto, "type": r.Header.Get("Content-Type"), "agent": r.UserAgent(), "length": r.ContentLength, "bytes": n,
	})
}

// serveSocket sends the messages of a WebSocket back.
func serveSocket(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"a"}, CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		return
	}
	defer func() { _ = c.CloseNow() }()
	c.SetReadLimit(8 << 20)
	for {
		kind, message, err := c.Read(r.Context())
		if err != nil || c.Write(r.Context(), kind, message) != nil {
			return
		}
	}
}
