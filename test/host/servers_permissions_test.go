package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// The host reaches only ports on which the permissions let guests listen, even where the
// kernel lets them.
func TestListenIsDenied(t *testing.T) {
	for name, network := range map[string]string{
		"no network":   `"deny"`,
		"UDP":          `{"rules":[{"mode":"allow","patterns":["udp://localhost:*"]}]}`,
		"outside only": `{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:443"]}]}`,
		"another port": `{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:443","tcp://localhost:3001"]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			rt := harness.CreateExact(t, options(t, network))
			stop := harness.StartProgram(t, rt, `
import net from 'node:net';
net.createServer().on('error', () => console.log('denied')).listen(3000, '127.0.0.1', () => console.log('listens'));
setInterval(() => {}, 1000);`)
			defer stop()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, dialed := rt.Dial(ctx, "tcp", 3000)
			waited := rt.WaitForListener(ctx, 3000)
			for _, err := range []error{dialed, waited} {
				if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "localhost:3000") {
					t.Errorf("got %v", err)
				}
			}
			if _, err := rt.Listeners(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A server is reached by the host of its own runtime only, and a port of the host by none.
func TestServersAreApart(t *testing.T) {
	for name, network := range networks {
		t.Run(name, func(t *testing.T) {
			first, second := harness.CreateExact(t, options(t, network)), harness.CreateExact(t, options(t, network))
			const answer = `import http from 'node:http'; http.createServer((_, res) => res.end('of the guest')).listen(3000);`
			start(t, first, 3000, answer)
			if c, err := second.Dial(t.Context(), "tcp", 3000); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("from another runtime: %v, %v", c, err)
			}
			for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
				port := listenOnHost(t, address)
				if c, err := first.Dial(t.Context(), "tcp", port); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("the host's %s: %v, %v", address, c, err)
				}
				if list, err := first.Listeners(t.Context()); err != nil || len(list) != 1 {
					t.Errorf("listeners %v, %v", list, err)
				}
				g := start(t, second, port, fmt.Sprintf(`import http from 'node:http'; http.createServer((_, res) => res.end('of the guest')).listen(%d);`, port))
				if got := get(newClient(t, second), fmt.Sprintf("http://localhost:%d/", port)); got != "200 of the guest" {
					t.Error(got)
				}
				g.Kill()
				<-g.Done()
			}
			const connect = `import net from 'node:net'; __return(await new Promise(done => net.connect(3000, '127.0.0.1', () => done('connected')).on('error', err => done(err.code))))`
			if res := harness.Run(t, second, connect, runtime.RunOptions{}); string(res.Value) == `"connected"` {
				t.Error("a guest of another runtime is connected")
			}
		})
	}
}

// listenOnHost starts a server of the host, which the test fails to keep apart if it is
// reached, and returns its port.
func listenOnHost(t *testing.T, address string) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Errorf("a connection from %v", c.RemoteAddr())
			_, _ = io.WriteString(c, "of the host")
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// While the host connects to a port, the guest still cannot.
func TestGuestGainsNoPort(t *testing.T) {
	const code = `
import net from 'node:net';
net.createServer(s => {
	net.connect(3000, '127.0.0.1', () => s.end('connected')).on('error', err => s.end(err.code));
}).listen(3000, '127.0.0.1');`
	eachNetwork(t, func(t *testing.T, rt *runtime.NodeRuntime) {
		if strings.HasSuffix(t.Name(), "localhost") {
			harness.Require(t, runtime.FeatureLandlock) // the default scope allows the connections
		}
		start(t, rt, 3000, code)
		for range 10 {
			if got, err := io.ReadAll(dial(t, rt, 3000)); err != nil || string(got) == "connected" {
				t.Fatalf("%q, %v", got, err)
			}
		}
	})
}

func TestDialRefuses(t *testing.T) {
	rt := harness.CreateExact(t, options(t, networks["localhost"]))
	for _, network := range []string{"", "udp", "unix", "tcp5"} {
		_, err := rt.Dial(t.Context(), network, 3000)
		if unknown := net.UnknownNetworkError(""); !errors.As(err, &unknown) {
			t.Errorf("%q: %v", network, err)
		}
	}
	if _, err := rt.Dial(t.Context(), "tcp", 0); err == nil {
		t.Error("port 0 is reached")
	}
}
