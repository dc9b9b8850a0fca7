package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
)

// start starts a server on a unix socket. Requests to /large get an endless response.
func start(t *testing.T, times times, change func(*Server)) (socket string) {
	t.Helper()
	set, err := settings.Read("", settings.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(Options{Options: service.Options{Settings: set, Log: slog.New(slog.DiscardHandler), CgroupParent: "/gaol-test-server"}}, times)
	next := s.http.Handler
	s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/large" {
			next.ServeHTTP(w, r)
			return
		}
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	if change != nil {
		change(s)
	}
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, nil) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Drain(context.Background()), <-served); err != nil {
			t.Error(err)
		}
	})
	return socket
}

// trickle sends text, and then one byte after another until the server closes the connection. It
// returns the server's data.
func trickle(t *testing.T, socket, text string) string {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		_, err := io.WriteString(c, text)
		for ; err == nil; time.Sleep(time.Millisecond) {
			_, err = io.WriteString(c, "a")
		}
	}()
	answer, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, os.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	return string(answer)
}

// A client that sends a byte now and then is disconnected all the same: only the total time counts.
func TestSlowRequests(t *testing.T) {
	header, body := defaultTimes, defaultTimes
	header.header, header.idle = 50*time.Millisecond, 50*time.Millisecond
	body.body, body.idle = 50*time.Millisecond, 50*time.Millisecond
	testSlowRequests(t, start(t, header, nil), start(t, body, nil))
}

func testSlowRequests(t *testing.T, slowHeader, slowBody string) {
	t.Helper()
	const body = "Host: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{\"code\":\""
	for name, c := range map[string]struct{ text, want string }{
		"request line":       {"GET /", ""},
		"headers":            {"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", ""},
		"body":               {"POST /v1/run HTTP/1.1\r\n" + body, "408 Request Timeout"},
		"chunks":             {"POST /v1/run HTTP/1.1\r\n" + strings.Replace(body, "Content-Length: 1000000", "Transfer-Encoding: chunked", 1), "HTTP/1.1 4"},
		"body of a refusal":  {"POST /v1/run HTTP/1.1\r\nOrigin: http://evil\r\n" + body, "403 Forbidden"},
		"body of no handler": {"POST /nothing HTTP/1.1\r\n" + body, "404 Not Found"},
		"body of a GET":      {"GET /healthz HTTP/1.1\r\n" + body, "200 OK"},
	} {
		socket := slowBody
		if c.want == "" {
			socket = slowHeader
		}
		if got := trickle(t, socket, c.text); name == "request line" && strings.HasPrefix(got, "HTTP/1.1 400 Bad Request") {
			continue // unless the machine was too busy to read any of it in time
		} else if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The time limit of a body ends with the body: it does not cancel the request.
func TestBodyDeadlineEndsWithBody(t *testing.T) {
	limit := 100 * time.Millisecond
	for ; isCanceledAfterBody(t, limit) && limit < 10*time.Second; limit *= 4 { // a busy machine may not read the body in time
	}
	if limit > 10*time.Second {
		t.Error("the request was canceled")
	}
}

// isCanceledAfterBody reports whether the request's context ends although its body was read.
func isCanceledAfterBody(t *testing.T, limit time.Duration) bool {
	t.Helper()
	short := defaultTimes
	short.body = limit
	canceled := make(chan bool, 1)
	socket := start(t, short, func(s *Server) {
		s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			new(timedBody).limit(w, r, short.body)
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
				canceled <- true
			case <-time.After(3 * short.body): // the deadline would have passed
				canceled <- false
			}
		})
	})
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
	return <-canceled
}

// A client that does not read its response is disconnected.
func TestSlowReader(t *testing.T) {
	short := defaultTimes
	short.write = 50 * time.Millisecond
	closed := make(chan struct{})
	socket := start(t, short, func(s *Server) {
		follow := s.http.ConnState
		s.http.ConnState = func(c net.Conn, state http.ConnState) {
			follow(c, state)
			if state == http.StateClosed {
				close(closed)
			}
		}
	})
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
	<-closed
}

// Idle connections above the bound are closed, the oldest first, and active ones stay.
func TestIdleConnections(t *testing.T) {
	var connections *connections
	socket := start(t, defaultTimes, func(s *Server) {
		connections = s.connections
		connections.maxOfOwner = 10
	})
	var all []net.Conn
	var readers []*bufio.Reader
	for i := range 25 {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		r := bufio.NewReader(c)
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if string(text) != "ok\n" {
			t.Errorf("%q, %v", text, err)
		}
		all, readers = append(all, c), append(readers, r)
		for connections.idle() != min(i+1, 10) { // it is idle only some time after the response
			time.Sleep(time.Millisecond)
		}
	}
	for _, r := range readers[:15] {
		if _, err := r.ReadByte(); err == nil {
			t.Error("an old connection is open")
		}
	}
	connections.mu.Lock()
	count := len(connections.idleSince)
	connections.mu.Unlock()
	if count != 10 {
		t.Errorf("%d connections", count)
	}
	for _, c := range all {
		_ = c.Close()
	}
}

// idle counts the idle connections.
func (cs *connections) idle() (n int) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, since := range cs.idleSince {
		if !since.IsZero() {
			n++
		}
	}
	return n
}

// If all connections are in use, new ones are closed.
func TestActiveConnectionsStay(t *testing.T) {
	cs := newConnections()
	cs.max, cs.maxOfOwner = 3, 2
	add := func(owner string, active bool) (c, excess *conn) {
		c = &conn{owner: owner, connections: cs}
		excess = cs.add(c)
		if active {
			cs.follow(c, http.StateActive)
		}
		return c, excess
	}
	a1, _ := add("a", true)
	a2, _ := add("a", false)
	if _, excess := add("b", true); excess != nil {
		t.Error("b is closed")
	}
	if c, excess := add("b", true); excess != a2 {
		t.Errorf("%v is closed for %v, not %v", excess, c, a2)
	}
	cs.remove(a2)
	c, excess := add("c", true)
	if excess != c {
		t.Errorf("%v is closed, not the new %v", excess, c)
	}
	cs.remove(c)
	cs.follow(a1, http.StateIdle)
	if _, excess := add("a", true); excess != a1 {
		t.Error("the idle connection is not closed")
	}
}
