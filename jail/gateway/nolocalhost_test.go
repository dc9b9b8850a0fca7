package gateway

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A process whose cgroup may not use localhost reaches nothing there. It reaches external hosts
// and the resolver.
func TestDenyLocalhost(t *testing.T) {
	_, inside := openInJail(t, Config{TCP: []PortRange{{1, 65535}}, UDP: true})
	dir, _ := newCgroup(t)
	if err := DenyLocalhost(dir); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"127.0.0.1:80", "[::1]:80"} {
		listenInside(t, inside, address)
	}
	var all sync.WaitGroup
	for to, reached := range map[string]bool{
		"tcp 127.0.0.1:80": false, "tcp [::1]:80": false, "tcp 0.0.0.0:80": false, "tcp [::ffff:127.0.0.1]:80": false,
		"tcp 93.184.215.14:443": true, "tcp [2606:2800::1]:443": true, "udp 10.0.2.3:53": true,
	} {
		all.Go(func() {
			if got := dialsFromCgroup(t, inside, dir, to, reached); got != reached {
				t.Errorf("%s: reached %t", to, got)
			}
		})
	}
	all.Wait()
}

// Other processes do not reach a server in the cgroup.
func TestDenyLocalhostToOthers(t *testing.T) {
	_, inside := openInJail(t, Config{TCP: []PortRange{{1, 65535}}})
	for _, denied := range []bool{false, true} {
		dir, _ := newCgroup(t)
		if denied {
			if err := DenyLocalhost(dir); err != nil {
				t.Fatal(err)
			}
		}
		server := dialFromCgroup(t, inside, dir, "listen 127.0.0.1:0", "")
		other, _ := newCgroup(t)
		if got := dialsFromCgroup(t, inside, other, "tcp "+server.String(), !denied); got == denied {
			t.Errorf("denied %t: reached %t", denied, got)
		}
	}
}

// dialsFromCgroup reports whether a process in the cgroup connects. A connect whose packets
// are dropped does not end, so that it gets little time unless it should succeed.
func dialsFromCgroup(t *testing.T, inside func(func() error) error, dir *os.File, to string, should bool) bool {
	t.Helper()
	limit := 2 * time.Second
	if should {
		limit = time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = []string{dialEnv + "=" + to}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := inside(cmd.Start); err != nil {
		t.Fatal(err)
	}
	return cmd.Wait() == nil
}
