package egress

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// version and host follow the path of a request.
const versionHost = " HTTP/1.1\r\nHost: api.example.com\r\n"

// serveRaw answers the first request of each connection of publicV4.
func (w *world) serveRaw(serve func(c net.Conn, r *bufio.Reader, req *http.Request)) {
	w.listen(publicV4, 80, func(c net.Conn) {
		r := bufio.NewReader(c)
		if req, err := http.ReadRequest(r); err == nil {
			serve(c, r, req)
		}
	})
}

func TestHeaderOfResponse(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 80)
	const early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
	const text = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nX-A: 1\r\nX-A: 2\r\n\r\n<html>"
	w.serveRaw(func(c net.Conn, _ *bufio.Reader, req *http.Request) {
		if req.URL.Path == "/early" {
			_, _ = io.WriteString(c, early)
		}
		_, _ = io.WriteString(c, text)
	})
	for path, want := range map[string]string{"/": text, "/early": early + text} {
		got, err := exchange(w.dial("api.example.com", 80), "GET "+path+versionHost+"\r\n")
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
}

// The server decides whether it wants a body.
func TestExpectContinue(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 80)
	w.serveRaw(func(c net.Conn, r *bufio.Reader, req *http.Request) {
		if req.URL.Path == "/refused" {
			_, _ = io.WriteString(c, "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			return
		}
		if n := r.Buffered(); n > 0 {
			t.Errorf("%d bytes came before they were asked for", n)
		}
		if req.URL.Path == "/late" {
			_, _ = r.Peek(1) // the body: the relay does not wait for long
		}
		_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		body, _ := io.ReadAll(req.Body)
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	})
	for path, want := range map[string]string{"/refused": "HTTP/1.1 417", "/": "HTTP/1.1 100", "/late": "HTTP/1.1 100"} {
		c := w.dial("api.example.com", 80)
		_, _ = io.WriteString(c, "POST "+path+versionHost+"Content-Length: 4\r\nExpect: 100-continue\r\n\r\n")
		r := bufio.NewReader(c)
		if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("%s: got %q, %v", path, line, err)
		}
		if path == "/refused" {
			continue
		}
		_, _ = io.WriteString(c, "body")
		_ = c.(*net.TCPConn).CloseWrite()
		if rest, err := io.ReadAll(r); err != nil || !strings.HasPrefix(string(rest), "\r\nHTTP/1.1 200") || !strings.HasSuffix(string(rest), "\r\n\r\nbody") {
			t.Errorf("got %q, %v", rest, err)
		}
	}
}

// The server may respond to a guest that sends no more.
func TestHalfCloseAfterRequest(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 80)
	w.serveRaw(func(c net.Conn, _ *bufio.Reader, req *http.Request) {
		if _, err := io.ReadAll(req.Body); err != nil {
			t.Error(err)
		}
		time.Sleep(100 * time.Millisecond) // the relay sees the end of the guest
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
	})
	for _, text := range []string{"GET /" + versionHost + "\r\n", "POST /" + versionHost + "Content-Length: 1\r\n\r\nx", "POST /" + versionHost + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"} {
		if got, err := exchange(w.dial("api.example.com", 80), text); err != nil || !strings.HasSuffix(got, "\r\n\r\nhi") {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}

// A guest learns that a response is incomplete.
func TestIncompleteResponse(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 80)
	w.serveRaw(func(c net.Conn, _ *bufio.Reader, _ *http.Request) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n")
	})
	c := w.dial("api.example.com", 80)
	_, _ = io.WriteString(c, "GET /"+versionHost+"\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err == nil || string(body) != "hi" {
		t.Errorf("got %q, %v", body, err)
	}
}

// A guest that goes away in the middle of a body ends the request.
func TestCloseWithinBody(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 80)
	ended := make(chan error, 1)
	w.serveRaw(func(_ net.Conn, _ *bufio.Reader, req *http.Request) {
		_, err := io.ReadAll(req.Body)
		ended <- err
	})
	got, err := exchange(w.dial("api.example.com", 80), "POST /"+versionHost+"Content-Length: 10\r\n\r\nx")
	if strings.Contains(got, "200") || <-ended == nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// The two directions of an upgraded connection end one by one. The guest may send before
// the server responds.
func TestHalfCloseAfterUpgrade(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 80)
	w.serveRaw(func(c net.Conn, r *bufio.Reader, _ *http.Request) {
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
		all, err := io.ReadAll(r)
		fmt.Fprintf(c, "got %s, %v", all, err)
	})
	for _, early := range []string{"", "hello ", strings.Repeat("hello ", 2000)} {
		c := w.dial("api.example.com", 80)
		_, _ = io.WriteString(c, "GET /"+versionHost+"Upgrade: x\r\nConnection: Upgrade\r\n\r\n"+early)
		r := bufio.NewReader(c)
		resp, err := http.ReadResponse(r, nil)
		if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(resp, err)
		}
		if rest, err := exchange(c, "world"); err != nil || rest != "got "+early+"world, <nil>" {
			t.Errorf("got %q, %v", rest, err)
		}
		_ = resp.Body.Close()
	}
}

// A server cannot fill the host's memory with a header.
func TestEndlessHeader(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 80)
	line := "X-A: " + strings.Repeat("a", 1<<10) + "\r\n"
	w.serveRaw(func(c net.Conn, _ *bufio.Reader, _ *http.Request) {
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		sent, most := 0, 64<<20 // the kernel buffers some of it
		for ; err == nil && sent <= most; sent += len(line) {
			_, err = io.WriteString(c, line)
		}
		if sent > most {
			t.Errorf("%d bytes were read", sent)
		}
	})
	if got, err := exchange(w.dial("api.example.com", 80), "GET /"+versionHost+"\r\n"); strings.Contains(got, "200") {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestTrailerOfRequest(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 80)
	w.serveRaw(func(c net.Conn, _ *bufio.Reader, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		text := fmt.Sprintf("%s %s", body, req.Trailer.Get("X-Sum"))
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	})
	got, err := exchange(w.dial("api.example.com", 80), "POST /"+versionHost+"Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Sum: 1234\r\n\r\n")
	if err != nil || !strings.HasSuffix(got, "\r\n\r\nx 1234") {
		t.Errorf("got %q, %v", got, err)
	}
}

// Data that a server sends after a response is dropped, and not logged. The next request uses
// another connection.
func TestUnsolicitedResponse(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 80)
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(os.Stderr)
	closed := make(chan struct{}, 2)
	w.listen(publicV4, 80, func(c net.Conn) {
		r := bufio.NewReader(c)
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
		time.Sleep(10 * time.Millisecond) // both orders are right
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
		_, _ = r.ReadByte()
		closed <- struct{}{}
	})
	c := w.dial("api.example.com", 80)
	r := bufio.NewReader(c)
	for range 2 {
		if _, err := io.WriteString(c, "GET /"+versionHost+"\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(body) != "hi" {
			t.Errorf("got %q, %v", body, err)
		}
		<-closed
	}
	if logged.Len() > 0 {
		t.Errorf("logged: %s", &logged)
	}
}
