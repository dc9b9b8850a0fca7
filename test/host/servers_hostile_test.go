package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
)

// hostile is a program with servers that misbehave, by port.
const hostile = `
import net from 'node:net';
const flood = (s, text) => { const more = () => { while (s.write(text)); }; s.on('drain', more); more(); };
const ok = 'HTTP/1.1 200 OK\r\n';
const servers = {
	3001: s => { s.write(ok); flood(s, 'x-header: ' + 'x'.repeat(1000) + '\r\n'); },
	3002: s => { s.write(ok); flood(s, 'x'.repeat(10000)); },
	3003: s => flood(s, 'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n'),
	3004: s => { s.write(ok + 'transfer-encoding: chunked\r\n\r\n0\r\n'); flood(s, 'x-trailer: ' + 'x'.repeat(1000) + '\r\n'); },
	3005: s => { s.write(ok + 'transfer-encoding: chunked\r\n\r\n1;'); flood(s, 'x'.repeat(10000)); },
	3006: s => s.end(ok + 'content-length: 100\r\n\r\nhalf'),
	3007: s => s.resetAndDestroy(),
	3008: s => s.end(ok + 'content-length: 5\r\ncontent-length: 6\r\n\r\nhello!'),
	3009: s => flood(s, '\0'.repeat(10000)),
	3010: s => { s.write(ok + 'content-length: 1000000000000000\r\n\r\n'); flood(s, 'x'.repeat(10000)); },
	3011: s => s.once('data', () => console.log('asked')),
	3015: s => s.write(ok + 'content-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nx: not asked for\r\n\r\n'),
	3012: s => s.end(ok + 'content-encoding: gzip\r\ncontent-length: 4\r\n\r\nbomb'),
	3013: s => s.end('HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n'),
	3014: s => s.end('HTTP/1.1 302 Found\r\nlocation: http://localhost.example.com:3006/\r\ncontent-length: 0\r\n\r\n'),
};
for (const [port, serve] of Object.entries(servers)) {
	net.createServer(s => { s.on('error', () => {}); serve(s); }).listen(port, '127.0.0.1');
}
net.createServer().listen(3000, '127.0.0.1');`

// answers are what requests to the servers of hostile return: each text contains the wanted one,
// or one of two.
var answers = map[string]string{
	"3001": "server response headers exceeded 65536 bytes",
	"3002": "server response headers exceeded 65536 bytes",
	"3003": "server response headers exceeded 65536 bytes",
	"3004": "suspiciously long trailer",
	"3005": "header line too long",
	"3006": "unexpected EOF",
	"3007": "connection reset by peer|EOF",
	"3008": "multiple Content-Length",
	"3009": "malformed HTTP response|server response headers exceeded 65536 bytes",
	"3012": "200 bomb",
	"3013": "dial 169.254.169.254:80: only localhost, 127.0.0.1 and [::1] are the guest's",
	"3014": "dial localhost.example.com:3006: only localhost",
	"3015": "200 ok",
}

// No server makes a request of the host fail in another way than by an error, take memory
// without bound, or print to the host's log.
func TestHostileServers(t *testing.T) {
	eachNetwork(t, func(t *testing.T, rt *runtime.NodeRuntime) {
		start(t, rt, 3000, hostile)
		client := newClient(t, rt)
		var logged bytes.Buffer
		log.SetOutput(&logged) // http.Transport writes to it
		defer log.SetOutput(os.Stderr)
		for port, want := range answers {
			got := get(client, "http://localhost:"+port+"/")
			if a, b, _ := strings.Cut(want, "|"); !strings.Contains(got, a) && (b == "" || !strings.Contains(got, b)) {
				t.Errorf("port %s: %.200s", port, got)
			}
		}
		if logged.Len() > 0 {
			t.Errorf("the log has %.200s", &logged)
		}
		resp, err := client.Get("http://localhost:3010/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.CopyN(io.Discard, resp.Body, 1<<20); err != nil { // the caller bounds bodies
			t.Error(err)
		}
	})
}

// The context of a request bounds a server that never answers.
func TestServerThatNeverAnswers(t *testing.T) {
	eachNetwork(t, func(t *testing.T, rt *runtime.NodeRuntime) {
		g := start(t, rt, 3000, hostile)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, _ = g.out.ReadString('\n') // it has got the request
			cancel()
		}()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost:3011/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := newClient(t, rt).Do(req)
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// Data of a server that the host does not read fills only bounded buffers of the host.
func TestUnreadData(t *testing.T) {
	eachNetwork(t, func(t *testing.T, rt *runtime.NodeRuntime) {
		start(t, rt, 3000, hostile)
		raw, err := dial(t, rt, 3009).(syscall.Conn).SyscallConn()
		if harness.HasAgent() && errors.Is(err, errors.ErrUnsupported) {
			return // it is a stream, which package mux bounds
		}
		if err != nil {
			t.Fatal(err)
		}
		var size int
		var failed error
		err = raw.Control(func(fd uintptr) { size, failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) })
		if err = errors.Join(err, failed); err != nil || size > 256<<10 {
			t.Errorf("a buffer of %d bytes, %v", size, err)
		}
	})
}

// A server that accepts nothing makes dials wait, without a thread for each, until their
// context ends.
func TestServerThatAcceptsNothing(t *testing.T) {
	eachNetwork(t, func(t *testing.T, rt *runtime.NodeRuntime) {
		start(t, rt, 3000, blocked)
		for range 2 { // the kernel's queue
			dial(t, rt, 3000)
		}
		countThreads := func() int { return len(harness.Glob("/proc/self/task/*")) }
		threads, descriptors := countThreads(), harness.OpenDescriptors()
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		const count = 100
		var dials sync.WaitGroup
		for range count {
			dials.Go(func() {
				c, err := rt.Dial(ctx, "tcp", 3000)
				if !errors.Is(err, io.ErrNoProgress) {
					t.Errorf("%v, %v", c, err)
				}
			})
		}
		harness.WaitFor(t, "all dials", func() bool {
			return (harness.HasAgent() || harness.OpenDescriptors() >= descriptors+count) && countThreads() < threads+count/2
		})
		cancel(io.ErrNoProgress)
		dials.Wait()
	})
}
