package host

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// WaitForListener returns when the guest listens, and not for a server that Dial cannot reach.
func TestWaitForListener(t *testing.T) {
	const code = `
import net from 'node:net';
const listen = (port, host) => new Promise(done => net.createServer(s => s.end()).listen(port, host, done));
await listen(3001, '127.0.0.1');
await listen(3000, '127.0.0.2');
process.stdin.once('data', async () => listen(3000, '127.0.0.1'));`
	eachLauncher(t, func(t *testing.T, rt *runtime.NodeRuntime) {
		g := start(t, rt, 3001, code)
		harness.WaitFor(t, "the other address", func() bool {
			list, err := rt.Listeners(t.Context())
			return err == nil && len(list) == 2
		})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, io.ErrNoProgress)
		defer cancel()
		if err := rt.WaitForListener(ctx, 3000); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("before it listens: %v", err)
		}
		waited := make(chan error)
		go func() { waited <- rt.WaitForListener(t.Context(), 3000) }()
		if _, err := io.WriteString(g.Stdin, "now\n"); err != nil {
			t.Fatal(err)
		}
		if err := <-waited; err != nil {
			t.Error(err)
		}
		dial(t, rt, 3000)
	})
}

// A guest with many servers hides none from WaitForListener, and the list is bounded.
func TestManyListeners(t *testing.T) {
	const code = `
import net from 'node:net';
const listen = port => new Promise(done => net.createServer().listen(port, '127.0.0.1', done));
for (let port = 20000; port < 21100; port++) await listen(port);
await listen(3000);`
	for name, network := range networks {
		t.Run(name, func(t *testing.T) {
			o := options(t, network)
			o.Limits.OpenFiles = 2048
			rt := harness.CreateExact(t, o)
			start(t, rt, 3000, code)
			list, err := rt.Listeners(t.Context())
			if err != nil || len(list) != 1024 {
				t.Errorf("%d addresses, %v", len(list), err)
			}
			if !slices.IsSortedFunc(list, func(a, b netip.AddrPort) int { return a.Compare(b) }) {
				t.Error("they are in no order")
			}
		})
	}
}

// A sandbox whose pid 1 is killed ends what waits for its servers.
func TestSandboxDies(t *testing.T) {
	eachNetwork(t, func(t *testing.T, rt *runtime.NodeRuntime) {
		waited := make(chan error, 1)
		go func() { waited <- rt.WaitForListener(t.Context(), 3000) }()
		killPid1(t)
		_, dialed := rt.Dial(t.Context(), "tcp", 3000)
		_, listed := rt.Listeners(t.Context())
		for name, err := range map[string]error{"WaitForListener": <-waited, "Dial": dialed, "Listeners": listed} {
			if err == nil || !strings.HasSuffix(err.Error(), "the sandbox has died: its first process was killed") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// killPid1 kills the first process of the only sandbox, and waits for its end.
func killPid1(t *testing.T) {
	t.Helper()
	var all []int
	// A container's first process becomes the reaper after Create.
	harness.WaitFor(t, "the reaper", func() bool { all = harness.Reapers(); return len(all) == 1 })
	if err := syscall.Kill(all[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, "its end", func() bool { return len(harness.Reapers()) == 0 })
}
