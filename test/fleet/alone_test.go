package fleet

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// mostAlone bounds the memory of an idle server without a fleet, in KiB: 15 MiB more than the 13 MiB measured on 2026-11-29. It excludes
// pages of the program's file, whose number depends on the page cache.
const mostAlone = 28 * 1024

// A server without --fleet and --join listens on no TCP port, starts no engine, makes no files of a fleet, and needs little more memory
// than before there were fleets.
func TestWithoutFleet(t *testing.T) {
	t.Parallel()
	n := newCluster(t).prepare(t, "alone")
	n.run(t, n.gaolCommand(n.base()))
	n.waitLog(t, "serve")
	harness.WaitFor(t, "it is ready", func() bool { return servertest.Send(t, n.asRoot(t), "GET", "/readyz", nil).Status == http.StatusOK })
	if used := harness.ProcNumber(t, procOf(n.Process.Pid)+"/status", "RssAnon:"); used > mostAlone {
		t.Errorf("it uses %d KiB of memory, more than %d", used, mostAlone)
	}
	if ports := listening(t, n.Process.Pid); len(ports) > 0 {
		t.Errorf("it listens on %q", ports)
	}
	for _, p := range programsOf(n.store) {
		if p.pid != n.Process.Pid {
			t.Errorf("it has started %+v", p)
		}
	}
	if _, err := os.Stat(filepath.Join(n.store, "fleet")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of a fleet: %v", err)
	}
	if out, err := n.gaolFleet("nodes"); err == nil || !strings.Contains(err.Error(), "the server is not one of a fleet: start it with --fleet or --join") {
		t.Errorf("gaol fleet nodes: %q %v", out, err)
	}
	n.stop(t)
}

// BenchmarkAlone compares the time from the start of gaol serve to its readiness with that of another program, such as an earlier version.
// They take turns.
func BenchmarkAlone(b *testing.B) {
	baseline := os.Getenv("GAOL_TEST_BASELINE")
	if baseline == "" {
		b.Skip("set GAOL_TEST_BASELINE to the path of another gaol")
	}
	var own, other []time.Duration
	for b.Loop() {
		own, other = append(own, startTime(b, harness.Gaol(b))), append(other, startTime(b, baseline))
	}
	slices.Sort(own)
	slices.Sort(other)
	now, before := own[len(own)/2].Seconds(), other[len(other)/2].Seconds()
	b.ReportMetric(now/before, "x")
	b.ReportMetric((now-before)*1000, "ms-more")
}

// startTime starts and ends a server, and returns the time until it is ready.
func startTime(b *testing.B, program string) time.Duration {
	b.Helper()
	socket := filepath.Join(b.TempDir(), "s")
	begin := time.Now()
	c := exec.CommandContext(b.Context(), program, "serve", "--socket", socket)
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _, _ = c.Process.Signal(syscall.SIGTERM), c.Wait() }()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return servertest.Dial(socket, servertest.User{})
	}}
	defer transport.CloseIdleConnections()
	harness.WaitFor(b, "the server is ready", func() bool {
		res, err := (&http.Client{Transport: transport}).Get("http://gaol/readyz")
		return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
	})
	return time.Since(begin)
}

// listening returns the addresses in /proc/net of the TCP sockets on which a process listens.
func listening(t *testing.T, pid int) (addresses []string) {
	t.Helper()
	sockets := map[string]bool{}
	for _, fd := range harness.Glob(filepath.Join(procOf(pid), "fd/*")) {
		if target, err := os.Readlink(fd); err == nil {
			sockets[target] = true
		}
	}
	if len(sockets) == 0 {
		t.Fatalf("process %d has no descriptors", pid)
	}
	const state, inode, stateListen = 3, 9, "0A"
	for _, line := range append(harness.Lines(procOf(pid)+"/net/tcp"), harness.Lines(procOf(pid)+"/net/tcp6")...) {
		if f := strings.Fields(line); len(f) > inode && f[state] == stateListen && sockets["socket:["+f[inode]+"]"] {
			addresses = append(addresses, f[1])
		}
	}
	return addresses
}
