package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/websocket"

	"gaol/runtime"
)

// listening is a program with a server for each way to listen.
const listening = `
import http from 'node:http';
const servers = { 3000: ['127.0.0.1'], 3001: ['::1'], 3002: ['0.0.0.0'], 3003: ['::'], 3004: ['::', true], 3005: [], 3006: ['localhost'] };
for (const [port, [host, ipv6Only]] of Object.entries(servers)) {
	http.createServer((req, res) => {
		let length = 0;
		req.on('data', part => { length += part.length; });
		req.on('end', () => res.end(JSON.stringify({ url: req.url, length, from: req.socket.remoteAddress })));
	}).listen({ port, host, ipv6Only });
}`

// Servers on the loopback addresses and on all addresses are reached, with one family or both.
func TestHTTP(t *testing.T) {
	eachLauncher(t, func(t *testing.T, rt *runtime.NodeRuntime) {
		start(t, rt, 3006, listening)
		client := newClient(t, rt)
		for _, test := range []struct {
			at     string
			v4, v6 bool
		}{
			{"127.0.0.1:3000", true, false},
			{"[::1]:3001", false, true},
			{"0.0.0.0:3002", true, false},
			{"[::]:3003", true, true},
			{"[::]:3004", false, true},
			{"[::]:3005", true, true},
		} {
			at := netip.MustParseAddrPort(test.at)
			waitFor(t, rt, at.Port())
			if list, err := rt.Listeners(t.Context()); err != nil || !slices.Contains(list, at) {
				t.Errorf("%v is not in %v, %v", at, list, err)
			}
			for host, reached := range map[string]bool{"localhost": true, "127.0.0.1": test.v4, "[::1]": test.v6} {
				err := post(client, fmt.Sprintf("http://%s:%d", host, at.Port()))
				if (err == nil) != reached || err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("%s at %v: %v", host, at, err)
				}
			}
		}
		if got := get(client, "http://localhost:3006/"); !strings.HasPrefix(got, `200 {"url":"/"`) {
			t.Errorf("localhost: %s", got)
		}
	})
}

// post sends a large request, and checks the data at the server.
func post(client *http.Client, server string) error {
	body := bytes.Repeat([]byte("x"), 1<<20)
	resp, err := client.Post(server+"/path?query", "text/plain", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var got struct {
		URL, From string
		Length    int
	}
	err = json.NewDecoder(resp.Body).Decode(&got)
	from, _ := netip.ParseAddr(got.From)
	if err != nil || got.URL != "/path?query" || got.Length != len(body) || !from.Unmap().IsLoopback() {
		return fmt.Errorf("the server got %+v: %w", got, err)
	}
	return nil
}

// eventStream is a server that sends an event when it has been asked for it.
const eventStream = `
import http from 'node:http';
let next;
http.createServer(async (req, res) => {
	if (req.url === '/next') return next(res.end());
	res.setHeader('content-type', 'text/event-stream');
	for (const text of ['one', 'two', 'three']) {
		const asked = new Promise(done => { next = done; });
		res.write('data: ' + text + '\n\n');
		await asked;
	}
	res.end();
}).listen(3000, '127.0.0.1');`

// Events arrive one by one.
func TestEventStream(t *testing.T) {
	eachNetwork(t, func(t *testing.T, rt *runtime.NodeRuntime) {
		start(t, rt, 3000, eventStream)
		client := newClient(t, rt)
		resp, err := client.Get("http://localhost:3000/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for _, text := range []string{"one", "two", "three"} {
			want := "data: " + text + "\n\n"
			got := make([]byte, len(want))
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
				t.Fatalf("got %q, %v", got, err)
			}
			if got := get(client, "http://localhost:3000/next"); got != "200 " {
				t.Fatal(got)
			}
		}
		if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
			t.Errorf("rest %q, %v", rest, err)
		}
	})
}

// echoFrames is a WebSocket server that sends short frames back.
const echoFrames = `
import http from 'node:http';
import crypto from 'node:crypto';
http.createServer().on('upgrade', (req, socket) => {
	const accept = crypto.createHash('sha1').update(req.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
	socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ' + accept + '\r\n\r\n');
	let data = Buffer.alloc(0);
	socket.on('data', part => {
		data = Buffer.concat([data, part]);
		while (data.length >= 6 && data.length >= 6 + (data[1] & 0x7f)) {
			const n = data[1] & 0x7f, mask = data.subarray(2, 6);
			const text = data.subarray(6, 6 + n).map((b, i) => b ^ mask[i % 4]);
			socket.write(Buffer.concat([Buffer.from([data[0], n]), text]));
			data = data.subarray(6 + n);
		}
	});
	socket.on('error', () => {});
}).listen(3000);`

func TestWebSocket(t *testing.T) {
	eachLauncher(t, func(t *testing.T, rt *runtime.NodeRuntime) {
		start(t, rt, 3000, echoFrames)
		config, err := websocket.NewConfig("ws://localhost:3000/", "http://localhost:3000/")
		if err != nil {
			t.Fatal(err)
		}
		ws, err := websocket.NewClient(config, dial(t, rt, 3000))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"hello", "", strings.Repeat("x", 125)} {
			var got string
			if err := errors.Join(websocket.Message.Send(ws, text), websocket.Message.Receive(ws, &got)); err != nil || got != text {
				t.Errorf("%q: %q, %v", text, got, err)
			}
		}
	})
}

// After an upgrade, the body of the response is the connection.
func TestUpgrade(t *testing.T) {
	eachNetwork(t, func(t *testing.T, rt *runtime.NodeRuntime) {
		start(t, rt, 3000, echoFrames)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost:3000/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
		resp, err := newClient(t, rt).Transport.RoundTrip(req) // a client with a Timeout wraps the body
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, ok := resp.Body.(io.ReadWriteCloser)
		if accept := resp.Header.Get("Sec-WebSocket-Accept"); resp.StatusCode != http.StatusSwitchingProtocols || !ok || accept != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" { // of RFC 6455
			t.Fatalf("%s, %T, %q", resp.Status, resp.Body, accept)
		}
		if _, err := body.Write([]byte{0x81, 0x82, 0, 0, 0, 0, 'h', 'i'}); err != nil { // masked with zeros
			t.Fatal(err)
		}
		got := make([]byte, 4)
		if _, err := io.ReadFull(body, got); err != nil || string(got) != "\x81\x02hi" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// Half-closed connections pass on the end in both directions.
func TestHalfClose(t *testing.T) {
	eachNetwork(t, func(t *testing.T, rt *runtime.NodeRuntime) {
		start(t, rt, 3000, echoServer)
		c := dial(t, rt, 3000)
		text := bytes.Repeat([]byte("text"), 1<<18)
		go func() {
			_, _ = c.Write(text)
			_ = c.(interface{ CloseWrite() error }).CloseWrite()
		}()
		if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

// A program that exits ends its connections, and nothing listens any more.
func TestGuestDies(t *testing.T) {
	eachLauncher(t, func(t *testing.T, rt *runtime.NodeRuntime) {
		g := start(t, rt, 3000, echoServer)
		c := dial(t, rt, 3000)
		if _, err := io.WriteString(c, "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		g.Kill()
		if n, err := c.Read(make([]byte, 1)); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%d bytes, %v", n, err)
		}
		<-g.Done()
		if c, err := rt.Dial(t.Context(), "tcp", 3000); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%v, %v", c, err)
		}
		if list, err := rt.Listeners(t.Context()); err != nil || len(list) > 0 {
			t.Errorf("%v, %v", list, err)
		}
		start(t, rt, 3000, echoServer) // another one can have the port
	})
}
