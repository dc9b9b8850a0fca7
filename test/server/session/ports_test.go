package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	protocol "gaol/internal/session"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// listening are permissions to listen on localhost.
const listening = `{"network":{"rules":[{"mode":"allow","operations":["listen"],"patterns":["tcp://localhost:*"]}]}}`

// newServer starts a guest's server, and returns its sandbox when it listens on port 3000.
func newServer(t *testing.T, c *client.Client, code string) *client.Sandbox {
	t.Helper()
	var p policy.Permissions
	if err := json.Unmarshal([]byte(listening), &p); err != nil {
		t.Fatal(err)
	}
	sb := createIn(t, c, client.CreateOptions{Permissions: p})
	if _, err := sb.SpawnCode(soon(t), code, runtime.SpawnOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := sb.WaitForListener(soon(t), 3000); err != nil {
		t.Fatal(err)
	}
	return sb
}

// echoServer echoes, and ends when its client has ended.
const echoServer = `import net from 'node:net';
	net.createServer({ allowHalfOpen: true }, s => s.on('error', () => {}).on('data', d => s.write(d) || s.pause()).on('drain', () => s.resume())
		.on('end', () => s.end('end'))).listen(3000, '127.0.0.1');`

func dialIn(t *testing.T, sb *client.Sandbox) net.Conn {
	t.Helper()
	c, err := sb.Dial(soon(t), 3000)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func testListeners(t *testing.T, c *client.Client) {
	sb := newServer(t, c, echoServer)
	if list, err := sb.Listeners(soon(t)); err != nil || len(list) != 1 || list[0].String() != "127.0.0.1:3000" {
		t.Errorf("%v %v", err, list)
	}
	ctx, cancel := context.WithCancel(soon(t))
	time.AfterFunc(10*time.Millisecond, cancel)
	if err := sb.WaitForListener(ctx, 3001); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := sb.Dial(soon(t), 3001); !isCode(err, "not_listening") {
		t.Errorf("%v", err)
	}
	deaf := createIn(t, c, client.CreateOptions{Permissions: policy.Permissions{Network: policy.Scope{Default: policy.Deny}}})
	if err := deaf.WaitForListener(soon(t), 3000); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("without a network: %v", err)
	}
	if _, err := deaf.Dial(soon(t), 3000); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("without a network: %v", err)
	}
}

func testDial(t *testing.T, c *client.Client) {
	conn := dialIn(t, newServer(t, c, echoServer))
	r := bufio.NewReader(conn)
	for _, text := range []string{"one\n", "\x00\xff\n"} {
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		if got, err := r.ReadString('\n'); err != nil || got != text {
			t.Errorf("%v %q", err, got)
		}
	}
	if err := conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Error(err)
	}
	if _, err := r.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Error(err)
	}
	go func() {
		_, _ = conn.Write(make([]byte, 4<<20)) // more than all buffers
		_ = conn.(interface{ CloseWrite() error }).CloseWrite()
	}()
	if rest, err := io.ReadAll(r); err != nil || len(rest) != 4<<20+len("end") || !strings.HasSuffix(string(rest), "end") {
		t.Errorf("%v, %d bytes", err, len(rest))
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// testDialEnds: a guest that ends its side only can still read, a reset is an error, and Close does not
// lose written bytes.
func testDialEnds(t *testing.T, c *client.Client) {
	sb := newServer(t, c, `import fs from 'node:fs'; import net from 'node:net';
		net.createServer({ allowHalfOpen: true }, s => {
			let text = '';
			s.on('error', () => {}).on('data', d => { text += d; if (text === 'reset') s.resetAndDestroy(); if (text === 'half') s.end('bye'); })
				.on('end', () => { fs.appendFileSync('/workspace/got', text + '\n'); s.end(); });
		}).listen(3000, '127.0.0.1');`)
	half := dialIn(t, sb)
	_, _ = io.WriteString(half, "half")
	if got, err := io.ReadAll(half); err != nil || string(got) != "bye" {
		t.Errorf("%v %q", err, got)
	}
	if _, err := io.WriteString(half, " more"); err != nil {
		t.Error(err)
	}
	_ = half.Close()
	reset := dialIn(t, sb)
	_, _ = io.WriteString(reset, "reset")
	if got, err := io.ReadAll(reset); !isCode(err, "bad_gateway") || len(got) > 0 {
		t.Errorf("%v %q", err, got)
	}
	closed := dialIn(t, sb)
	_, _ = io.WriteString(closed, "closed")
	_ = closed.Close()
	harness.WaitFor(t, "the guest has got everything", func() bool {
		got, err := sb.FS().ReadFile(soon(t), "/workspace/got")
		return err == nil && strings.Contains(string(got), "half more\n") && strings.Contains(string(got), "closed\n")
	})
	open := dialIn(t, sb)
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
	if got, err := io.ReadAll(open); !isCode(err, "closed") || len(got) > 0 {
		t.Errorf("in a closed sandbox: %v %q", err, got)
	}
}

// testDialHTTP: a client of HTTP uses connections to a guest's server.
func testDialHTTP(t *testing.T, c *client.Client) {
	sb := newServer(t, c, `import http from 'node:http';
		http.createServer((req, res) => { res.setHeader('x-method', req.method); req.pipe(res); }).listen(3000, 'localhost');`)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return sb.Dial(ctx, 3000) }}
	defer transport.CloseIdleConnections()
	body := strings.Repeat("body", 500_000)
	for range 2 { // the second one uses the same connection
		res, err := (&http.Client{Transport: transport}).Post("http://localhost:3000/", "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(got) != body || res.Header.Get("X-Method") != "POST" {
			t.Errorf("%v, %d bytes, %v", err, len(got), res.Header)
		}
	}
}

// testDialFlood: guests that flood, and that do not read, block their own connections only.
func testDialFlood(t *testing.T, c *client.Client) {
	sb := newServer(t, c, `import net from 'node:net';
		net.createServer(s => { s.on('error', () => {}).pause(); const more = () => { while (s.write('x'.repeat(65536))); }; s.on('drain', more); more(); }).listen(3000, '127.0.0.1');`)
	flood := dialIn(t, sb)
	stuck := make(chan error, 1)
	go func() {
		_, err := flood.Write(make([]byte, 16<<20)) // more than all buffers
		stuck <- err
	}()
	if _, err := flood.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if res, err := sb.Run(soon(t), `__return(1)`, runtime.RunOptions{}); err != nil || string(res.Value) != "1" {
		t.Errorf("%v", err)
	}
	if n, err := io.CopyN(io.Discard, flood, 4<<20); err != nil {
		t.Errorf("%v after %d bytes", err, n)
	}
	if err := flood.Close(); err != nil {
		t.Error(err)
	}
	if err := <-stuck; err == nil {
		t.Error("a guest that does not read has got everything")
	}
}

// TestDialFrames: the frames of a connection, and what its end by the client leaves.
func TestDialFrames(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	c := dial(t, s)
	sb := newServer(t, c, echoServer)
	r := newRaw(t, s, `{}`)
	r.sandbox = sb.ID()
	r.request(2, "dial", `{"sandbox":"SB","port":3000},"stdin":true,"events":true`)
	if text := r.until(2, protocol.KindEvent); string(text) != `{"event":"started","data":{}}` {
		t.Errorf("%s", text)
	}
	r.send(protocol.Append(nil, protocol.KindStdin, 2, []byte("hello")))
	if text := r.until(2, protocol.KindStdout); string(text) != "hello" {
		t.Errorf("%q", text)
	}
	r.send(protocol.Append(nil, protocol.KindStdin, 2))
	if text := r.until(2, protocol.KindStdout); string(text) != "end" {
		t.Errorf("%q", text)
	}
	if text := r.until(2, protocol.KindEvent); string(text) != `{"event":"end","data":{}}` {
		t.Errorf("%s", text)
	}
	if text := r.until(2, protocol.KindResult); strings.TrimSpace(string(text)) != `null` {
		t.Errorf("%s", text)
	}
	r.request(3, "dial", `{"sandbox":"SB","port":3000},"stdin":true,"events":true`)
	r.until(3, protocol.KindEvent)
	r.send(protocol.Append(nil, protocol.KindCancel, 3))
	if text := r.until(3, protocol.KindError); !strings.Contains(string(text), `"canceled"`) {
		t.Errorf("%s", text)
	}
	r.request(4, "dial", `{"sandbox":"SB","port":3000},"stdin":true,"events":true`)
	r.until(4, protocol.KindEvent)
	r.send(protocol.Append(nil, protocol.KindStdin, 4, []byte("hello")))
	if err := r.CloseNow(); err != nil { // with a connection
		t.Fatal(err)
	}
	harness.WaitFor(t, "the session has ended", func() bool {
		list, err := c.Sandboxes(soon(t))
		return err == nil && len(list) == 1
	})
	if text := s.Log.String(); strings.Contains(text, "level=ERROR") {
		t.Errorf("the server's log: %s", text)
	}
}

// TestDialCanceled: cancel ends a connection of which the guest has ended its side.
func TestDialCanceled(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	sb := newServer(t, dial(t, s), `import net from 'node:net'; net.createServer({ allowHalfOpen: true }, s => s.resume().end('bye')).listen(3000, '127.0.0.1');`)
	r := newRaw(t, s, `{}`)
	r.sandbox = sb.ID()
	r.request(2, "dial", `{"sandbox":"SB","port":3000},"stdin":true,"events":true`)
	for _, want := range []string{"started", "end"} {
		if text := r.until(2, protocol.KindEvent); !strings.Contains(string(text), want) {
			t.Errorf("%s, want %s", text, want)
		}
	}
	r.send(protocol.Append(nil, protocol.KindCancel, 2))
	if text := r.until(2, protocol.KindError); !strings.Contains(string(text), `"canceled"`) {
		t.Errorf("%s", text)
	}
}
