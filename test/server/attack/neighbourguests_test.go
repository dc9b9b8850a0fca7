package attack

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// connecting is a program that opens 1000 connections to an address. Each then does something with its
// socket s. Ended ones are opened again.
const connecting = `
import net from 'node:net';
const part = Buffer.alloc(64 << 10);
const open = () => {
	const s = net.connect(%d, %q, () => { %s });
	s.on('error', () => {}).on('close', () => setTimeout(open, 100));
};
for (let i = 0; i < 1000; i++) {
	open();
	if (i %% 50 === 0) await new Promise(done => setTimeout(done, 10));
}
setInterval(() => {}, 1000);`

const (
	writing = `s.on('drain', send); function send() { while (s.write(part)); } send();`
	pausing = `s.pause();`
)

// manyConnections is how many connections an attack has when it is in effect.
const manyConnections = 500

// egressUnread fills the buffers of connections to a server that does not read.
func egressUnread(ctx context.Context, t *testing.T, w *world, begun func()) {
	w.connect(ctx, t, fmt.Sprintf(connecting, unread.Port(), unread.Addr(), writing), begun)
}

// egressNotReading does not read from its connections.
func egressNotReading(ctx context.Context, t *testing.T, w *world, begun func()) {
	w.connect(ctx, t, fmt.Sprintf(connecting, sending.Port(), sending.Addr(), pausing), begun)
}

// connect runs a program that connects, until ctx ends.
func (w *world) connect(ctx context.Context, t *testing.T, code string, begun func()) {
	var workers sync.WaitGroup
	workers.Go(func() { w.whenConnected(ctx, w.internet.connections()+manyConnections, begun) })
	w.guest(ctx, t, "/v1/run", map[string]any{
		"code": code, "permissions": network("tcp://93.184.215.14:*"), "limits": map[string]any{"memoryBytes": 64 << 20, "openFiles": 4096},
	})
	workers.Wait()
}

// whenConnected calls begun when the internet's servers have got so many connections.
func (w *world) whenConnected(ctx context.Context, count int, begun func()) {
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-tick.C:
			if w.internet.connections() >= count {
				begun()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// asking is a program that asks for names about which no reply comes, and serves a port without replies.
const asking = `
import dns from 'node:dns/promises'; import http from 'node:http';
http.createServer(() => {}).listen(3000, '127.0.0.1');
let n = 0;
for (let i = 0; i < 300; i++) (async () => {
	for (const r = new dns.Resolver();;) await r.resolve4('n' + n++ + '.%s').catch(() => new Promise(done => setTimeout(done, 1000)));
})();`

// takeDescriptors takes as many descriptors of the server as it can, by five sandboxes: connections to the
// internet, look-ups, connections to ports, and idle connections to the server. Its clients wait after a refusal:
// those that do not would measure the processors that they use themselves, beside the server's.
func takeDescriptors(ctx context.Context, t *testing.T, w *world, begun func()) {
	const sandboxes, ports, idle, connections = 5, 200, 1000, 4000 // nearly the tenant's quotas
	var boxes []string
	for range sandboxes {
		box, remove := w.box(t, map[string]any{"permissions": network("tcp://93.184.215.14:*", "tcp://*."+silentZone+":*", "tcp://localhost:*")})
		defer remove()
		boxes = append(boxes, box)
	}
	var attacks sync.WaitGroup
	defer attacks.Wait() // before the sandboxes are removed
	before := w.internet.connections()
	for _, box := range boxes {
		for _, code := range []string{fmt.Sprintf(connecting, unread.Port(), unread.Addr(), pausing), fmt.Sprintf(asking, silentZone)} {
			attacks.Go(func() { w.guest(ctx, t, box+"/run", map[string]any{"code": code}) })
		}
	}
	w.whenConnected(ctx, before+manyConnections, func() {})
	opened, err := dialIdle(w.socket, idle)
	defer func() {
		for _, c := range opened {
			_ = unix.Close(c)
		}
	}()
	if err != nil {
		t.Error(err)
	}
	for _, box := range boxes {
		attacks.Go(func() {
			repeat(ctx, ports, func() {
				_, _, _ = send(ctx, w.attacker, http.MethodGet, box+"/ports/3000/", "")
				time.Sleep(20 * quotaPause) // refused, or the quota of connections has closed it
			})
		})
	}
	w.whenConnected(ctx, before+connections, begun)
	<-ctx.Done()
}

// dialIdle opens connections to a server as the attacker.
func dialIdle(socket string, n int) (opened []int, err error) {
	return opened, mallory.Do(func() error {
		for range n {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			opened = append(opened, fd)
			if err := unix.Connect(fd, &unix.SockaddrUnix{Name: socket}); err != nil {
				return err
			}
		}
		return nil
	})
}

// adviseCache tries without end to remove the image's files from the page cache, and to read them into it.
func adviseCache(ctx context.Context, t *testing.T, w *world, begun func()) {
	program, err := harness.Compile("pagecache")
	if err != nil {
		t.Error(err)
		return
	}
	box, remove := w.box(t, map[string]any{"fileBytes": map[string]string{"/workspace/pagecache": base64.StdEncoding.EncodeToString(program)}})
	defer remove()
	prepared := servertest.Send(t, w.attacker, http.MethodPost, box+"/command", map[string]any{"command": "chmod", "args": []string{"755", "pagecache"}})
	prepared.Want(t, http.StatusOK)
	begun()
	w.guest(ctx, t, box+"/command", map[string]any{"command": "sh", "args": []string{"-c", "find /usr /lib -type f | exec xargs -n 1000000 ./pagecache"}})
}

// oddLines is a program that sends requests with odd bytes in their first lines.
const oddLines = `
import net from 'node:net'; import dns from 'node:dns/promises';
const { address } = await dns.lookup('%s');
const rest = '\r\nHost: evil.test\r\n\r\n', texts = ['GET x' + rest, 'GET' + rest, 'GET x\x85Host: evil.test\x85\x85', '\x01GET / HTTP/1.1\x1eHost: evil.test\x1e\x1e'];
for (let b = 0; b < 256; b++) {
	const s = String.fromCharCode(b);
	texts.push(s + 'GET / HTTP/1.1' + rest, 'G' + s + 'ET / HTTP/1.1' + rest, 'GET' + s + '/' + s + 'HTTP/1.1' + rest, 'GET /' + s + ' HTTP/1.1' + rest, 'GET / HTTP/1.1' + s + rest, s + s + s + s + rest);
}
let n = 0;
const send = text => new Promise(done => {
	const s = net.connect(80, address, () => s.end(text, 'latin1'));
	s.on('error', () => {}).on('close', done).resume();
});
const good = () => send('GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n');
for (let i = 0; i < 16; i++) (async () => { for (;;) { await send(texts[n++ %% texts.length]); if (n %% 50 === 0) await good(); } })();`

// sendOddLines sends lines that a lenient server takes for requests to another host.
func sendOddLines(ctx context.Context, t *testing.T, w *world, begun func()) {
	var workers sync.WaitGroup
	workers.Go(func() { w.whenConnected(ctx, w.internet.connections()+1, begun) })
	w.guest(ctx, t, "/v1/run", map[string]any{"code": fmt.Sprintf(oddLines, named, named), "permissions": network("tcp://" + named + ":80")})
	workers.Wait()
	w.internet.mu.Lock()
	defer w.internet.mu.Unlock()
	for _, text := range w.internet.heard {
		if strings.Contains(text, "evil") {
			t.Errorf("the server got %q", text)
		}
	}
	w.internet.heard = nil
}
