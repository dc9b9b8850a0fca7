package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
)

// forged begins as net/http's own errors do.
const forged = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"

// padded returns forged behind n other bytes, and followed by some.
func padded(n int) []byte {
	return []byte(strings.Repeat("x", n) + forged + strings.Repeat("y", n%7))
}

// echo replies with padded text: in one write or several, streamed, or by a hijacked connection.
func echo(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.URL.Query().Get("n")) // the test's own
	text := padded(n)
	switch r.URL.Path {
	case "/length":
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write(text)
	case "/chunks":
		for part := range bytes.SplitSeq(text, []byte("H")) {
			_, _ = w.Write(part)
			_, _ = w.Write([]byte("H"))
		}
	case "/events":
		_, _ = w.Write(text)
		_ = http.NewResponseController(w).Flush()
	case "/copy":
		_, _ = w.(io.ReaderFrom).ReadFrom(bytes.NewReader(text))
	case "/hijack":
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(text))
		_, _ = c.Write(text)
		_ = c.Close()
	}
}

// startEcho starts a server whose requests get echo, and returns a connection to it.
func startEcho(t *testing.T) func() net.Conn {
	t.Helper()
	set, err := settings.Read("", settings.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(Options{Options: service.Options{Settings: set, Log: slog.New(slog.DiscardHandler), CgroupParent: "/gaol-test-server"}}, defaultTimes)
	s.http.Handler = http.HandlerFunc(echo)
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, nil) }()
	t.Cleanup(func() {
		if err := s.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		<-served
	})
	return func() net.Conn {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
		return c
	}
}

// TestResponsesPassUnchanged: bytes that look like an error of net/http arrive as they were written, at each
// offset near the buffers' ends, and requests that follow on the connection get their own responses.
func TestResponsesPassUnchanged(t *testing.T) {
	dial := startEcho(t)
	for _, path := range []string{"/length", "/chunks", "/events", "/copy", "/hijack"} {
		c := dial()
		r := bufio.NewReader(c)
		for _, edge := range []int{0, 512, 2048, 4096, 32 << 10, 64 << 10} {
			for n := max(0, edge-len(forged)-8); n < edge+80; n += 1 + edge/8192 {
				if path == "/hijack" {
					if n%16 > 0 {
						continue
					}
					c = dial()
					r.Reset(c)
				}
				request := httptest.NewRequest("GET", fmt.Sprintf("http://x%s?n=%d", path, n), nil)
				if err := request.Write(c); err != nil {
					t.Fatal(err)
				}
				res, err := http.ReadResponse(r, request)
				if err != nil {
					t.Fatalf("%s, %d: %v", path, n, err)
				}
				body, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				want := padded(n)
				if path == "/chunks" {
					want = append(want, 'H')
				}
				if err != nil || res.StatusCode != 200 || !bytes.Equal(body, want) {
					t.Fatalf("%s, %d: %v, %d, %d bytes", path, n, err, res.StatusCode, len(body))
				}
			}
		}
	}
}
