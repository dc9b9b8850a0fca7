package network

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"gaol/test/harness"
	"gaol/test/internettest"
)

const unaskedRules = `{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:80","tcp://api.example.com:81"]}]}`

// unaskedRequests makes two requests on one kept connection. In between, port 81 responds when the server at
// port 80 has sent something unasked.
const unaskedRequests = `
	import http from 'node:http';
	const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
	const get = (port, agent) => new Promise((done, failed) => http.get({ host: 'api.example.com', port, agent, family: 4 }, (res) => {
		res.setEncoding('utf8').on('data', (text) => console.log(port, text)).on('end', done);
	}).on('error', failed));
	await get(80, agent);
	await get(81);
	await get(80, agent);`

// Data that a server sends on an idle connection reaches neither the guest nor the standard error of the
// process that embeds gaol: net/http would write up to 4 KB of it there.
func TestUnaskedBytes(t *testing.T) {
	serveNames(t)
	idle, dropped := make(chan struct{}), make(chan struct{})
	started, relays := make(chan int, 1), make(chan int, 1)
	var once sync.Once
	host := hostCommand("unasked")
	respond := func(c net.Conn, text string) bool {
		_, err := http.ReadRequest(bufio.NewReader(c))
		if err == nil {
			_, err = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		}
		return err == nil
	}
	internettest.Listen(t, publicV4, 80, func(c net.Conn) {
		if !respond(c, "asked") || !wait(t, idle) {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"+strings.Repeat("evil\n", 800))
		_, _ = io.Copy(io.Discard, c)
		once.Do(func() { close(dropped) })
	})
	internettest.Listen(t, publicV4, 81, func(c net.Conn) {
		relays <- countRelays(<-started)
		close(idle)
		if wait(t, dropped) {
			respond(c, "dropped")
		}
	})
	var stdout, stderr bytes.Buffer
	host.Stdout, host.Stderr = &stdout, &stderr
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	started <- host.Process.Pid
	err := host.Wait()
	if want := "80 asked\n81 dropped\n80 asked\n"; err != nil || stdout.String() != want {
		t.Fatalf("%v, printed %q, want %q; standard error: %s", err, &stdout, want, &stderr)
	}
	if stderr.Len() > 0 {
		t.Errorf("standard error: %s", &stderr)
	}
	if n := <-relays; n != 1 {
		t.Errorf("%d relays, want 1: this test proves nothing", n)
	}
}

// countRelays returns how many children of a process carry connections.
func countRelays(pid int) (n int) {
	for _, list := range harness.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) {
		for _, child := range strings.Fields(harness.Lines(list)[0]) {
			if strings.HasPrefix(harness.Lines("/proc/" + child + "/cmdline")[0], "gaol-egress") {
				n++
			}
		}
	}
	return n
}

// wait waits until a channel is closed, unless the test ends before.
func wait(t *testing.T, closed <-chan struct{}) bool {
	select {
	case <-closed:
		return true
	case <-t.Context().Done():
		return false
	}
}
