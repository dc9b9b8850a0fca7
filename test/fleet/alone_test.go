package fleet

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/test/harness"
)

// A server without --fleet and --join listens on no TCP port, starts no engine, and makes no files of a fleet.
func TestWithoutFleet(t *testing.T) {
	t.Parallel()
	n := newCluster(t).prepare(t, "alone")
	n.run(t, n.gaolCommand(n.base()))
	n.waitLog(t, "serve")
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
