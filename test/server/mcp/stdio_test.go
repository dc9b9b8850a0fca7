package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/test/harness"
	"gaol/test/server/servertest"
	"gaol/test/tier"
)

// gaolMCP returns the command gaol mcp for a user, with a socket in its environment; empty for none.
func gaolMCP(t *testing.T, user servertest.User, socket string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(harness.Gaol(t), append([]string{"mcp"}, args...)...)
	cmd.Env = append(os.Environ(), "GAOL_SOCKET="+socket, "GAOL_TOKEN=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user.UID), Gid: uint32(user.GID)}}
	return cmd
}

// TestStdio uses gaol mcp without privileges.
func TestStdio(t *testing.T) {
	tier.Soak(t)
	socket := start(t, nil)
	for _, version := range harness.Some([]string{"", "2024-11-05", "2025-11-25"}) {
		s := dial(t, &mcp.CommandTransport{Command: gaolMCP(t, alice, socket, "--tools", "sandbox")}, version)
		testValue(t, s)
		testFailure(t, s)
		testArguments(t, s)
		id := s.create(args{"files": args{"f": "content"}})
		read, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "gaol://sandbox/" + id + "/workspace/f"})
		if err != nil || read.Contents[0].Text != "content" {
			t.Errorf("%+v, %v", read, err)
		}
		cancelCall(t, s, "run_command", args{"command": "echo begun; sleep 600", "sandboxId": id, "timeoutMs": 600_000})
		harness.WaitFor(t, "the command has ended", func() bool { return processes(t, client(t, socket, alice), id) == 0 })
		if err := s.Close(); err != nil {
			t.Errorf("%q: exit status: %v", version, err)
		}
	}
}

// TestStdioIsKilled kills the proxy during a call: the server ends the run.
func TestStdioIsKilled(t *testing.T) {
	socket := start(t, nil)
	for _, version := range []string{"", "2025-06-18"} {
		cmd := gaolMCP(t, alice, socket)
		s := dial(t, &mcp.CommandTransport{Command: cmd}, version)
		id := s.create(nil)
		params := &mcp.CallToolParams{Name: "run_command", Arguments: args{"command": "echo begun; sleep 600", "sandboxId": id, "timeoutMs": 600_000}}
		params.SetProgressToken(1)
		s.callUntilProgress(params)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		harness.WaitFor(t, "the run has ended", func() bool { return processes(t, client(t, socket, alice), id) == 0 })
	}
}

// TestStdioServerRestarts stops the server, which the client notices, and starts another one.
func TestStdioServerRestarts(t *testing.T) {
	link := filepath.Join(servertest.PublicDir(t), "gaol.sock")
	var s, old *session
	t.Run("first server", func(part *testing.T) { // it is closed at the end of this part
		if err := os.Symlink(start(part, nil), link); err != nil {
			part.Fatal(err)
		}
		s = dial(t, &mcp.CommandTransport{Command: gaolMCP(t, alice, link)}, "")
		old = dial(t, &mcp.CommandTransport{Command: gaolMCP(t, alice, link)}, "2025-06-18")
		testValue(part, s.in(part))
		testValue(part, old.in(part))
	})
	_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code", Arguments: args{"code": "1"}})
	if err == nil || !strings.Contains(err.Error(), "no server listens on "+link) {
		t.Errorf("without a server: %v", err)
	}
	if err := errors.Join(os.Remove(link), os.Symlink(start(t, nil), link)); err != nil {
		t.Fatal(err)
	}
	testValue(t, s)
	testValue(t, old)
}

// TestStdioInput pipes requests into gaol mcp: it replies to all, prints nothing else, and ends.
func TestStdioInput(t *testing.T) {
	socket, ids := start(t, nil), map[int]bool{}
	for try := 0; try < 5 && len(ids) != 3; try++ { // a busy machine may not reply before the calls' time is over
		ids = inputReplies(t, socket)
	}
	if len(ids) != 3 {
		t.Errorf("replies to %v", ids)
	}
}

// inputReplies pipes three requests into gaol mcp, and returns the ids of its replies.
func inputReplies(t *testing.T, socket string) map[int]bool {
	t.Helper()
	cmd := gaolMCP(t, alice, socket)
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_code","arguments":{"code":"6 * 7"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/list"}
`)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Errorf("%v: %s", err, &stderr)
	}
	ids := map[int]bool{}
	for line := range bytes.Lines(out) {
		var m struct {
			ID     int
			Result json.RawMessage
		}
		if err := json.Unmarshal(line, &m); err != nil || len(m.Result) == 0 {
			t.Errorf("%v: %s", err, line)
		}
		ids[m.ID] = true
	}
	return ids
}

// TestStdioErrors starts gaol mcp where it cannot serve.
func TestStdioErrors(t *testing.T) {
	socket := start(t, nil)
	if err := os.Chmod(socket, 0o660); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		socket string
		args   []string
		want   string
	}{
		{socket, nil, "you may not use the server on " + socket},
		{socket + "-none", nil, "no server listens on " + socket + "-none; root starts one with: gaol serve"},
		{"ftp://host", nil, "want http:// or https://"},
		{"http://127.0.0.1:1", nil, "set GAOL_TOKEN"},
		{socket, []string{"--tools", "nope"}, "want sandbox"},
	} {
		cmd := gaolMCP(t, alice, c.socket, c.args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); err == nil || code != 125 || len(out) > 0 || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s %v: exit status %d, stdout %q, stderr %q", c.socket, c.args, code, out, &stderr)
		}
	}
}

// TestStdioPrivate runs gaol mcp as root without a server, and kills it during a run.
func TestStdioPrivate(t *testing.T) {
	if _, err := os.Stat("/run/gaol/gaol.sock"); !errors.Is(err, fs.ErrNotExist) {
		t.Skip("a server listens on the default socket: gaol mcp uses that")
	}
	cmd := gaolMCP(t, servertest.User{}, "", "--tools", "sandbox")
	s := dial(t, &mcp.CommandTransport{Command: cmd}, "")
	testValue(t, s)
	s.ok("sandbox_init", args{}, nil)
	s.ok("run_in_sandbox", args{"source": "export const x: number = 1"}, nil)
	s.fails("playground_link", args{"source": "1"}, "runtime-error: ", "lacks a public URL")
	if err := s.Close(); err != nil {
		t.Errorf("exit status: %v", err)
	}

	cmd = gaolMCP(t, servertest.User{}, "")
	s = dial(t, &mcp.CommandTransport{Command: cmd}, "")
	marker := "marker=" + rand.Text()
	params := &mcp.CallToolParams{Name: "run_command", Arguments: args{"command": "echo begun; sleep 600; : " + marker, "timeoutMs": 600_000}}
	params.SetProgressToken(1)
	s.callUntilProgress(params)
	var jail []string
	harness.WaitFor(t, "the guest runs", func() bool {
		jail = jailOf(running(marker))
		return len(jail) > 0
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, "the guest has ended", func() bool { return running(marker) == "" })

	harness.WaitFor(t, "a later server has removed the cgroups of the killed one", func() bool {
		s := dial(t, &mcp.CommandTransport{Command: gaolMCP(t, servertest.User{}, "")}, "")
		testValue(t, s) // its sandbox removes what killed processes left
		if err := s.Close(); err != nil {
			t.Fatalf("exit status: %v", err)
		}
		return !slices.ContainsFunc(jail, func(dir string) bool {
			_, err := os.Stat(dir)
			return err == nil
		})
	})
}

// callUntilProgress calls a tool that does not end, and waits for its progress.
func (s *session) callUntilProgress(params *mcp.CallToolParams) {
	s.t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := s.CallTool(context.Background(), params)
		ended <- err
	}()
	select {
	case <-s.progress:
	case err := <-ended:
		s.t.Fatalf("ended without progress: %v", err)
	}
}

// running returns the folder in /proc of a process with an argument that contains a text, "" if there is none.
func running(text string) string {
	for _, path := range harness.Glob("/proc/[0-9]*/cmdline") {
		if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(text)) {
			return filepath.Dir(path)
		}
	}
	return ""
}

var jailCgroup = regexp.MustCompile(`:(/gaol/tenants/(?:[^/\n]+/)?j[0-9]+)/`)

// jailOf returns the cgroups of the jail of a process, by its folder in /proc.
func jailOf(proc string) []string {
	text, _ := os.ReadFile(proc + "/cgroup") // it may have ended
	found := jailCgroup.FindSubmatch(text)
	if found == nil {
		return nil
	}
	path := string(found[1])
	return harness.Glob("/sys/fs/cgroup"+path, "/sys/fs/cgroup/*"+path)
}
