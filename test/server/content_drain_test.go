package server

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/coder/websocket"

	"gaol/test/server/servertest"
)

// A server that is stopped waits for no client that sends nothing, receives nothing, or keeps its
// connection to a guest.
func TestStopDespiteClients(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	b := newBox(t, s, alice, map[string]any{"limits": map[string]any{"diskBytes": 256 << 20}})
	b.run(t, `import fs from 'node:fs'; fs.writeFileSync('big', ''); fs.truncateSync('big', 200 << 20)`)
	b.start(t, 3000, webSocketServer)
	b.start(t, 3001, `import http from 'node:http'; http.createServer((q, r) => r.end(Buffer.alloc(100 << 20))).listen(3001)`)
	socket, _, err := websocket.Dial(t.Context(), "ws://gaol"+b.path("ports/3000/"), &websocket.DialOptions{HTTPClient: b.Client})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.CloseNow()
	var bodies []io.ReadCloser
	for operation, query := range map[string][]string{"files": {"path", "/workspace/big"}, "files/tar": {"path", "/workspace"}, "ports/3001/": nil} {
		res, err := b.Do(b.request(t, "GET", nil, operation, query...))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		bodies = append(bodies, res.Body)
	}
	reader, writer := io.Pipe()
	uploaded := make(chan error, 1)
	go func() {
		res, err := b.Do(b.request(t, "PUT", reader, "files", "path", "/workspace/x"))
		if err == nil {
			res.Body.Close()
			if res.StatusCode >= 300 {
				err = errors.New(res.Status)
			}
		}
		uploaded <- err
	}()
	if _, err := writer.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.Drain(context.Background()) }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(maxStop):
		t.Fatal("the server does not stop")
	}
	if err := <-uploaded; err == nil {
		t.Error("half an upload succeeded")
	}
	for _, body := range bodies {
		if n, err := io.Copy(io.Discard, body); err == nil {
			t.Errorf("a download is complete, with %d bytes", n)
		}
	}
	if _, _, err := socket.Read(t.Context()); err == nil {
		t.Error("the WebSocket is open")
	}
	_ = writer.Close()
}

// maxStop is less than the minute that a client may send nothing.
const maxStop = 40 * time.Second
