package host

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// Network scopes of the tests' runtimes. With the second, BPF decides what reaches localhost.
var networks = map[string]string{
	"localhost": `{"rules":[{"mode":"allow","operations":["listen"],"patterns":["tcp://localhost:*"]}]}`,
	"outside":   `{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:443"]},{"mode":"allow","operations":["listen"],"patterns":["tcp://localhost:*"]}]}`,
}

// options returns the options of a runtime with a network scope. Without Landlock, the default scope replaces that of localhost alone.
func options(t testing.TB, network string) runtime.Options {
	t.Helper()
	if network == networks["localhost"] && !harness.Needs(t, runtime.FeatureLandlock) {
		return harness.Options(runtime.Options{})
	}
	p, err := policy.Parse([]byte(`{"network":` + network + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return harness.Options(runtime.Options{Permissions: p})
}

// eachNetwork runs a test with each of networks.
func eachNetwork(t *testing.T, f func(*testing.T, *runtime.NodeRuntime)) {
	for name, network := range networks {
		t.Run(name, func(t *testing.T) { f(t, harness.CreateExact(t, options(t, network))) })
	}
}

// eachLauncher runs a test with each of networks and launchers.
func eachLauncher(t *testing.T, f func(*testing.T, *runtime.NodeRuntime)) {
	for name, network := range networks {
		for _, l := range harness.SomeLaunchers() {
			t.Run(name+"/"+l.String(), func(t *testing.T) {
				o := options(t, network)
				o.Launcher = l
				f(t, harness.CreateExact(t, o))
			})
		}
	}
}

// guest is a program with servers.
type guest struct {
	*runtime.Process
	out *bufio.Reader
}

// start starts a program, and waits until it listens on a port.
func start(t testing.TB, rt *runtime.NodeRuntime, port uint16, code string) *guest {
	t.Helper()
	p, err := rt.SpawnCode(t.Context(), code, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if text, _ := io.ReadAll(p.Stderr); t.Failed() {
			t.Logf("the guest's standard error: %s", text)
		}
	})
	waitFor(t, rt, port)
	return &guest{p, bufio.NewReader(p.Stdout)}
}

func waitFor(t testing.TB, rt *runtime.NodeRuntime, port uint16) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := rt.WaitForListener(ctx, port); err != nil {
		t.Fatal(err)
	}
}

// dial connects to the guest.
func dial(t testing.TB, rt *runtime.NodeRuntime, port uint16) net.Conn {
	t.Helper()
	c, err := rt.Dial(t.Context(), "tcp", port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

// newClient returns a client for the guest's servers.
func newClient(t testing.TB, rt *runtime.NodeRuntime) *http.Client {
	transport := rt.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// get returns the body of a response, or the error.
func get(client *http.Client, url string) string {
	resp, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, body)
}

// echoServer is a program that echoes on port 3000.
const echoServer = `
import net from 'node:net';
net.createServer({ allowHalfOpen: true }, s => s.on('error', () => {}).pipe(s)).listen(3000, '127.0.0.1');`

// blocked is a program that listens on port 3000, and accepts nothing.
const blocked = `
import net from 'node:net';
net.createServer().listen({ port: 3000, host: '127.0.0.1', backlog: 1 }, () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));`
