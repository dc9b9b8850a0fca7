package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/settings"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// versions are the protocol versions of the tests, with sessions and without.
var versions = []string{"", "2025-03-26", "2025-06-18", "2025-11-25", "2024-11-05"}

// TestCancel cancels calls whose code never ends, once they have reported progress.
func TestCancel(t *testing.T) {
	socket := start(t, nil)
	for _, version := range harness.Some(versions) {
		s := connect(t, socket, alice, version)
		id := s.create(nil)
		for tool, a := range map[string]args{
			"run_code":    {"code": "console.log('begun \\x1b[31m'); for (;;);", "sandboxId": id, "timeoutMs": 600_000},
			"run_command": {"command": "echo begun; sleep 600", "sandboxId": id, "timeoutMs": 600_000},
		} {
			cancelCall(t, s, tool, a)
			harness.WaitFor(t, tool+" has ended", func() bool { return processes(t, client(t, socket, alice), id) == 0 })
		}
		s.ok("close_sandbox", args{"sandboxId": id}, nil)
	}
}

// cancelCall calls a tool, and cancels the call when it reports progress.
func cancelCall(t *testing.T, s *session, tool string, a args) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	params := &mcp.CallToolParams{Name: tool, Arguments: a}
	params.SetProgressToken("token-" + tool)
	ended := make(chan error, 1)
	go func() {
		_, err := s.CallTool(ctx, params)
		ended <- err
	}()
	select {
	case p := <-s.progress:
		for strings.HasPrefix(p.Message, "running for ") { // on a busy machine
			p = <-s.progress
		}
		if !strings.HasPrefix(p.Message, "begun") || strings.Contains(p.Message, "\x1b") || p.Progress < 0 {
			t.Errorf("%s: %+v", tool, p)
		}
	case err := <-ended:
		t.Fatalf("%s: ended without progress: %v", tool, err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%s: %v", tool, err)
	}
}

// processes counts what runs in a sandbox, by the HTTP API.
func processes(t *testing.T, c *http.Client, id string) int {
	t.Helper()
	var info struct{ Processes int }
	r := servertest.Send(t, c, http.MethodGet, "/v1/sandboxes/"+id, nil)
	r.Want(t, http.StatusOK)
	r.Into(t, &info)
	return info.Processes
}

// TestTenants attacks the sandboxes, contexts, resources and sessions of another tenant.
func TestTenants(t *testing.T) {
	socket := start(t, nil)
	a, b := connect(t, socket, alice, "2025-11-25"), connect(t, socket, bob, "")
	var c codeResult
	a.ok("run_code", args{"code": "const secret = 1", "contextId": "new"}, &c)
	a.ok("sandbox_init", args{"containerId": "shared-name"}, nil)
	for tool, x := range map[string]args{
		"run_code":      {"code": "1", "sandboxId": c.SandboxID},
		"run_command":   {"command": "true", "sandboxId": c.SandboxID},
		"close_sandbox": {"sandboxId": c.SandboxID},
		"write_file":    {"sandboxId": c.SandboxID, "path": "x", "content": ""},
		"read_file":     {"sandboxId": c.SandboxID, "path": "x"},
		"list_files":    {"sandboxId": c.SandboxID},
		"edit_file":     {"sandboxId": c.SandboxID, "path": "x", "oldText": "x", "newText": ""},
		"start_process": {"sandboxId": c.SandboxID, "command": "true"},
		"read_process":  {"sandboxId": c.SandboxID, "processId": "p-x"},
		"write_process": {"sandboxId": c.SandboxID, "processId": "p-x"},
		"stop_process":  {"sandboxId": c.SandboxID, "processId": "p-x"},
	} {
		if r := b.fails(tool, x, "no sandbox"); strings.Contains(strings.ReplaceAll(r.text, `"`+c.SandboxID+`"`, ""), c.SandboxID) {
			t.Errorf("%s names the sandbox of another tenant: %s", tool, r.text)
		}
	}
	b.fails("run_code", args{"code": "secret", "contextId": c.ContextID}, "no context")
	b.fails("sandbox_exists", args{"containerId": "shared-name", "path": "/"}, "does not exist")
	if _, err := b.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "gaol://sandbox/" + c.SandboxID + "/etc/passwd"}); err == nil {
		t.Error("read the resource of another tenant")
	}
	for method, want := range map[string]int{http.MethodPost: http.StatusNotFound, http.MethodDelete: http.StatusNotFound, http.MethodGet: http.StatusNotFound} {
		if r := post(t, client(t, socket, bob), method, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, a.ID()); r.Status != want {
			t.Errorf("%s in the session of another tenant: %d %s", method, r.Status, r.Body)
		}
	}
	a.ok("run_code", args{"code": "secret", "contextId": c.ContextID}, nil)
}

// post sends a request in a session.
func post(t *testing.T, c *http.Client, method, body, session string) *servertest.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://gaol/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method != http.MethodPost {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	return servertest.Do(t, c, r)
}

// TestSessions creates more sessions than a tenant may have. The oldest ones end, those in use do not.
func TestSessions(t *testing.T) {
	socket := start(t, nil)
	first := connect(t, socket, alice, "2025-11-25") // its stream of events is open
	c := client(t, socket, alice)
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	var ids []string
	for range 70 {
		r := post(t, c, http.MethodPost, initialize, "")
		id := r.Header.Get("Mcp-Session-Id")
		if r.Status != http.StatusOK || id == "" {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		post(t, c, http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, id)
		ids = append(ids, id)
	}
	for i, want := range map[int]int{0: http.StatusNotFound, 69: http.StatusOK} {
		if r := post(t, c, http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, ids[i]); r.Status != want {
			t.Errorf("session %d: %d %s", i, r.Status, r.Body)
		}
	}
	if err := first.Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// wantStatus fails the test unless a response has a status.
func wantStatus(t *testing.T, r *servertest.Response, want int) {
	t.Helper()
	if r.Status != want {
		t.Errorf("status %d, want %d: %s", r.Status, want, r.Body)
	}
}

// TestBadRequests checks the statuses of requests that are not of the protocol.
func TestBadRequests(t *testing.T) {
	socket := start(t, nil)
	c := client(t, socket, alice)
	for _, body := range []string{"", "{", "[]", strings.Repeat("[", 100_000), `"` + "\xff" + `"`} {
		if r := post(t, c, http.MethodPost, body, ""); r.Status < 400 || r.Status >= 500 {
			t.Errorf("%.20q: %d %s", body, r.Status, r.Body)
		}
	}
	wantStatus(t, post(t, c, http.MethodGet, "", ""), http.StatusBadRequest)
	wantStatus(t, post(t, c, http.MethodDelete, "", "none"), http.StatusNotFound)
	wantStatus(t, post(t, c, http.MethodPatch, "", ""), http.StatusMethodNotAllowed)
	post(t, c, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping","x":"`+strings.Repeat("x", 17<<20)+`"}`, "").Want(t, http.StatusRequestEntityTooLarge)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://gaol/mcp", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "text/plain")
	wantStatus(t, servertest.Do(t, c, r), http.StatusUnsupportedMediaType)
}

// TestDeepJSON sends JSON that is nested more deeply than a recursive parser can bear.
func TestDeepJSON(t *testing.T) {
	c := client(t, start(t, nil), alice)
	deep := strings.Repeat("[", 7<<20) + strings.Repeat("]", 7<<20)
	for _, body := range []string{
		deep,
		`{"jsonrpc":"2.0","id":` + deep + `}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"code":` + deep + `}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":` + strings.Repeat(`{"a":`, 2<<20) + "1" + strings.Repeat("}", 2<<20) + `}}`,
	} {
		r := post(t, c, http.MethodPost, body, "")
		r.Want(t, http.StatusBadRequest)
	}
	post(t, c, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "").Want(t, http.StatusOK)
}

// TestToolList checks what clients show of each tool.
func TestToolList(t *testing.T) {
	s := connect(t, start(t, nil), alice, "")
	names := []string{}
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		schemas, err := json.Marshal([]any{tool.InputSchema, tool.OutputSchema})
		if err != nil {
			t.Fatal(err)
		}
		if tool.Title == "" || tool.Description == "" || tool.Annotations == nil || tool.OutputSchema == nil || strings.Contains(string(schemas), `"null"`) {
			t.Errorf("%s: %+v %s", tool.Name, tool, schemas)
		}
		if !strings.HasPrefix(tool.Name, "sandbox_") {
			names = append(names, tool.Name)
		}
	}
	want := []string{"close_sandbox", "create_sandbox", "edit_file", "list_files", "playground_link", "read_file", "read_process", "run_code", "run_command", "run_in_sandbox", "start_process", "stop_process", "write_file", "write_process"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// TestSandboxTools calls the tools of package sandboxtools within the quotas of a tenant.
func TestSandboxTools(t *testing.T) {
	socket := start(t, func(s *settings.Settings) {
		s.Tenant.Sandboxes, s.Tenant.Runs = 2, 1
		s.Images = []string{"default"}
	})
	s := connect(t, socket, alice, "")
	var made struct{ ContainerID string }
	s.ok("sandbox_init", args{}, &made)
	other := s.create(nil)
	s.fails("sandbox_init", args{}, "quota sandboxes")
	s.fails("create_sandbox", args{}, "quota sandboxes", "close_sandbox")
	s.ok("close_sandbox", args{"sandboxId": other}, nil)
	s.fails("sandbox_init", args{"imageName": "other"}, "the server allows default")
	s.fails("sandbox_init", args{"projectOutPath": "/tmp/x"}, "projectOutPath")
	var out commandResult
	s.ok("sandbox_command", args{"containerId": made.ContainerID, "executable": "node", "args": []string{"-p", "6*7"}}, &out)
	if out.Stdout != "42\n" {
		t.Errorf("%+v", out)
	}
	s.fails("sandbox_command", args{"containerId": made.ContainerID, "executable": "node", "args": []string{"-e", "process.exit(3)"}}, `"exitCode":3`)
	s.ok("sandbox_destroy", args{"containerId": made.ContainerID}, nil)
	for range 2 { // the quota is free again
		s.ok("sandbox_init", args{}, &made)
	}
}
