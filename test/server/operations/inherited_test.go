package operations

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/rootfs"
	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// spawnIdle starts a program that does not end.
func spawnIdle(t testing.TB, sb *client.Sandbox) *client.Process {
	t.Helper()
	p, err := sb.SpawnCode(t.Context(), `setInterval(() => {}, 1e6)`, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Whatever ends the connection ends the server, with all sandboxes. The check at the end of all tests
// finds the leftovers.
func TestEnd(t *testing.T) {
	for name, end := range map[string]func(*inheritedServer){
		"the client is killed": func(p *inheritedServer) { _ = p.conn.Close() },
		"SIGTERM":              func(p *inheritedServer) { p.signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			p := startInherited(t, servertest.User{})
			proc := spawnIdle(t, create(t, p.session(), client.CreateOptions{Detached: true}))
			end(p)
			p.expectEnd()
			if res, err := proc.Wait(t.Context()); err == nil && res.Cause == "" {
				t.Errorf("the process has ended with %+v", res)
			}
		})
	}
}

// A killed server leaves no process behind, and the next one removes the rest.
func TestKilled(t *testing.T) {
	p := startInherited(t, servertest.User{})
	spawnIdle(t, create(t, p.session(), client.CreateOptions{}))
	p.signal(syscall.SIGKILL)
	p.wait()
	harness.WaitFor(t, "no process is left", func() bool { return len(harness.ProcessesIn(harness.JailCgroups())) == 0 })
	next := startInherited(t, servertest.User{})
	c := next.session()
	create(t, c, client.CreateOptions{})
	_ = c.Close()
	next.expectEnd()
}

// Signals of a terminal are for the client, and servers do not disturb each other.
func TestSurvives(t *testing.T) {
	p, other := startInherited(t, servertest.User{}), startInherited(t, servertest.User{})
	c := p.session()
	sb := create(t, c, client.CreateOptions{})
	proc := spawnIdle(t, sb)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP} { // to all processes of its group, as terminals do
		if err := syscall.Kill(-p.Process.Pid, s); err != nil {
			t.Fatal(err)
		}
	}
	otherClient := other.session()
	create(t, otherClient, client.CreateOptions{})
	_ = otherClient.Close()
	other.expectEnd()
	res, err := sb.Run(t.Context(), `console.log(6 * 7)`, runtime.RunOptions{})
	if err != nil || string(res.Stdout) != "42\n" {
		t.Errorf("%+v, %v", res, err)
	}
	select {
	case <-proc.Done():
		t.Error("a process of the guest has ended")
	default:
	}
}

// The peer must be root.
func TestOtherUser(t *testing.T) {
	p := startInherited(t, servertest.User{UID: 12345, GID: 12345})
	if status, log := p.wait(); status != 1 || !strings.Contains(log, "belongs to user 12345, and not to root") {
		t.Errorf("%d %s", status, log)
	}
}

// The client may do what root may.
func TestTrusted(t *testing.T) {
	p := startInherited(t, servertest.User{})
	c := p.session()
	private, modules := hostFolders(t)
	privateNetwork, err := policy.Parse([]byte(`{"network": {"rules": [{"mode": "allow", "operations": ["connect", "fetch"], "patterns": ["tcp://10.0.0.1:80"]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	sb := create(t, c, client.CreateOptions{
		Mounts:      []runtime.Mount{{Source: private, Target: "/private", Access: runtime.ReadWrite}},
		NodeModules: modules,
		Permissions: privateNetwork,
	})
	res, err := sb.Run(t.Context(), `
		import value from 'pkg';
		import { readFileSync, writeFileSync } from 'node:fs';
		writeFileSync('/private/out', readFileSync('/private/in'));
		__return(value)`, runtime.RunOptions{Timeout: 48 * time.Hour})
	if err != nil || string(res.Value) != "7" {
		t.Fatalf("%+v, %v", res, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(private, "out"), &st); err != nil || st.Uid != 12345 {
		t.Errorf("%v, owner %d", err, st.Uid)
	}
	for source, want := range map[string]string{
		filepath.Join(private, "nope"): "no such file or directory",
		"nope":                         "want an absolute path",
		"/":                            "mount /",
	} {
		_, err := c.Create(t.Context(), client.CreateOptions{Mounts: []runtime.Mount{{Source: source, Target: "/x"}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("mount %s: %v", source, err)
		}
	}
}

// hostFolders makes a folder of another user, and one with a package.
func hostFolders(t testing.TB) (private, modules string) {
	t.Helper()
	dir := servertest.PublicDir(t)
	private, modules = filepath.Join(dir, "private"), filepath.Join(dir, "modules")
	pkg := filepath.Join(modules, "pkg")
	err := errors.Join(
		os.MkdirAll(private, 0o700), os.MkdirAll(pkg, 0o755),
		os.WriteFile(filepath.Join(private, "in"), []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(pkg, "index.js"), []byte("module.exports = 7"), 0o644),
		os.Chown(private, 12345, 12345), os.Chown(filepath.Join(private, "in"), 12345, 12345),
	)
	if err != nil {
		t.Fatal(err)
	}
	return private, modules
}

// The API works before the connection becomes a session, or instead of that.
func TestHTTP(t *testing.T) {
	p := startInherited(t, servertest.User{})
	h := p.http()
	var sb struct{ ID string }
	permissions := map[string]any{"network": map[string]any{"rules": []any{map[string]any{"mode": "allow", "operations": []string{"listen"}, "patterns": []string{"tcp://localhost:*"}}}}}
	servertest.Send(t, h, http.MethodPost, "/v1/sandboxes", map[string]any{"permissions": permissions, "files": map[string]string{"/workspace/x": "1"}}).Into(t, &sb)
	path := "/v1/sandboxes/" + sb.ID
	testSnapshots(t, h, path)
	testHangup(t, p, h, path)
}

// Snapshots are the machine's, except for snapshots of a server's tenants.
func testSnapshots(t *testing.T, h *http.Client, sandbox string) {
	const name = "gaol-test-inherited"
	servertest.Send(t, h, http.MethodPost, sandbox+"/snapshots", map[string]any{"name": name}).Want(t, http.StatusCreated)
	servertest.Send(t, h, http.MethodPost, sandbox+"/snapshots", map[string]any{"name": "tenant-x"}).Want(t, http.StatusUnprocessableEntity)
	if list := string(servertest.Send(t, h, http.MethodGet, "/v1/snapshots", nil).Body); !strings.Contains(list, `"`+name+`"`) || strings.Contains(list, `"tenant-`) {
		t.Error(list)
	}
	store, err := rootfs.Open(os.Getenv(harness.StoreVar))
	if err != nil {
		t.Fatal(err)
	}
	snapshots, err := store.Snapshots()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := snapshots.Lookup(name); err != nil {
		t.Error(err)
	}
	servertest.Send(t, h, http.MethodDelete, "/v1/snapshots/"+name, nil).Want(t, http.StatusNoContent)
}

// testHangup closes a connection from which the server does not read, because a guest does not.
func testHangup(t *testing.T, p *inheritedServer, h *http.Client, sandbox string) {
	servertest.Send(t, h, http.MethodPost, sandbox+"/processes", map[string]any{
		"code": `require('net').createServer(c => c.pause()).listen(3000, '127.0.0.1')`,
	}).Want(t, http.StatusCreated)
	servertest.Send(t, h, http.MethodPost, sandbox+"/listeners/3000/wait", map[string]any{"timeoutMs": 60000}).Want(t, http.StatusOK)
	if _, err := io.WriteString(p.conn, "PUT "+sandbox+"/ports/3000/ HTTP/1.1\r\nHost: gaol\r\nContent-Length: 1000000000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	fill(t, p)
	_ = p.conn.Close()
	p.expectEnd()
}

// fill writes until the server does not read for some time.
func fill(t *testing.T, p *inheritedServer) {
	t.Helper()
	for {
		if err := p.conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := p.conn.Write(make([]byte, 1<<20)); errors.Is(err, os.ErrDeadlineExceeded) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
