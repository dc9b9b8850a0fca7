package session

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
	"gaol/vfs/hostfs"
)

func testUsage(t *testing.T, c *client.Client) {
	sb := newServer(t, c, echoServer)
	before, err := sb.Usage(soon(t))
	if err != nil || before.Processes != 1 || before.Listeners != 1 || before.Connections != 0 || before.Terminals != 0 || before.Sockets < 1 || before.Pipes < 3 || before.Memory < 1<<20 || before.Truncated {
		t.Errorf("%v %+v", err, before)
	}
	if err := sb.FS().WriteFile(soon(t), "/workspace/large", make([]byte, 1<<20), hostfs.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	conn := dialIn(t, sb)
	if _, err := io.WriteString(conn, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil { // so that the guest has accepted
		t.Fatal(err)
	}
	p := spawn(t, sb, runtime.SpawnOptions{Terminal: &runtime.Terminal{}}, "sh", "-c", "echo ready; sleep 1000")
	harness.Expect(t, bufio.NewReader(p.Stdout), "ready")
	after, err := sb.Usage(soon(t))
	if err != nil || after.Connections != 1 || after.Terminals != 1 || after.Descriptors <= before.Descriptors || after.Processes <= before.Processes {
		t.Errorf("%v %+v", err, after)
	}
	if n := after.Disk - before.Disk; n < 1<<20 || n > 2<<20 || after.Files <= before.Files {
		t.Errorf("%d bytes, %d and %d inodes", n, before.Files, after.Files)
	}
}

// TestContentOfTenants: another tenant's sandbox does not exist for any method on its content, and
// neither do its snapshots.
func TestContentOfTenants(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Tokens: servertest.Tokens(t, "other")})
	c := dial(t, s)
	sb := newServer(t, c, echoServer)
	if _, err := sb.Snapshot(soon(t), "of-root"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.RemoveSnapshot(soon(t), "of-root"); err != nil {
			t.Error(err)
		}
	}()
	other, err := client.Dial(soon(t), client.Options{Address: "http://" + s.Address, Token: servertest.Token("other")})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	stranger := other.Sandbox(sb.ID())
	files := stranger.FS()
	for name, do := range map[string]func() error{
		"readFile":  func() error { _, err := files.ReadFile(soon(t), "/etc/passwd"); return err },
		"writeFile": func() error { return files.WriteFile(soon(t), "/workspace/x", nil, hostfs.WriteOptions{}) },
		"stat":      func() error { _, err := files.Stat(soon(t), "/"); return err },
		"listFiles": func() error { _, _, err := files.List(soon(t), "/", client.ListOptions{}); return err },
		"makeDir":   func() error { return files.Mkdir(soon(t), "/workspace/x", 0) },
		"move":      func() error { return files.Rename(soon(t), "/workspace", "/workspace/x") },
		"remove":    func() error { return files.RemoveAll(soon(t), "/workspace") },
		"readTar":   func() error { _, err := files.Tar(soon(t), io.Discard, "/workspace"); return err },
		"writeTar": func() error {
			_, err := files.Untar(soon(t), strings.NewReader(""), "/workspace", client.UntarOptions{})
			return err
		},
		"snapshot":        func() error { _, err := stranger.Snapshot(soon(t), "x"); return err },
		"removeSnapshot":  func() error { return other.RemoveSnapshot(soon(t), "of-root") },
		"listeners":       func() error { _, err := stranger.Listeners(soon(t)); return err },
		"waitForListener": func() error { return stranger.WaitForListener(soon(t), 3000) },
		"dial":            func() error { _, err := stranger.Dial(soon(t), 3000); return err },
		"usage":           func() error { _, err := stranger.Usage(soon(t)); return err },
	} {
		if err := do(); !isCode(err, "not_found") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := other.Snapshots(soon(t)); err != nil || len(list) != 0 {
		t.Errorf("%v %+v", err, list)
	}
}
