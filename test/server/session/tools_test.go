package session

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/cmd/gaol/server/settings"
	protocol "gaol/internal/session"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// reply sends a request and returns its result, or its error.
func (r *raw) reply(id uint32, method, params string) (result json.RawMessage, p protocol.Problem) {
	r.t.Helper()
	r.request(id, method, params)
	for {
		f, err := r.next()
		switch {
		case err != nil:
			r.t.Fatal(err)
		case f.ID == id && f.Kind == protocol.KindResult:
			return f.Body, p
		case f.ID == id && f.Kind == protocol.KindError:
			if err := json.Unmarshal(f.Body, &p); err != nil {
				r.t.Fatal(err)
			}
			return nil, p
		}
	}
}

// tool calls a tool.
func (r *raw) tool(name, args string) (json.RawMessage, protocol.Problem) {
	r.t.Helper()
	return r.reply(9, "tool", `{"tool":"`+name+`","arguments":`+args+`}`)
}

// TestTools calls tools of one session after the other.
func TestTools(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit")
	s := servertest.Start(t, servertest.Options{Settings: func(s *settings.Settings) {
		s.Tenant.Runs, s.Images, s.AuditLog = 1, []string{"default"}, log
	}})
	for name, test := range map[string]func(*testing.T, *raw){"life": testToolsLife, "errors": testToolErrors, "normalize": testNormalize} {
		t.Run(name, func(t *testing.T) { test(t, newRaw(t, s, `{}`)) })
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"action":"session sandbox_command","sandbox":"a","codeSha256":`, `"action":"session sandbox_destroy","sandbox":"a"`, `"action":"session tool"`} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the audit log has no %s: %s", want, text)
		}
	}
}

// testToolsLife takes a sandbox of tools through its life.
func testToolsLife(t *testing.T, r *raw) {
	for _, step := range []struct{ tool, args, want string }{
		{"sandbox_init", `{"containerId":"a"}`, `"rootPath":"/workspace"`},
		{"sandbox_create_directory", `{"containerId":"a","path":"src/lib","recursive":true}`, `{"path":"/workspace/src/lib"}`},
		{"sandbox_write_file", `{"containerId":"a","path":"src/main.mjs","content":"console.log(6 * 7)"}`, `"size":18`},
		{"sandbox_read_file", `{"containerId":"a","path":"src/main.mjs"}`, `"content":"console.log(6 * 7)"`},
		{"sandbox_command", `{"containerId":"a","executable":"node","args":["main.mjs"],"workingDirectory":"src"}`, `"stdout":"42\n"`},
		{"sandbox_destroy", `{"containerId":"a"}`, `"removed":true`},
	} {
		if result, p := r.tool(step.tool, step.args); !strings.Contains(string(result), step.want) {
			t.Fatalf("%s: %s %+v", step.tool, result, p)
		}
	}
}

// testToolErrors: errors of tools have the tools' codes, and name the argument.
func testToolErrors(t *testing.T, r *raw) {
	if _, p := r.tool("sandbox_init", `{"containerId":"a"}`); p.Code != "" {
		t.Fatalf("%+v", p)
	}
	for _, tc := range []struct {
		tool, args, code, location string
		status                     int
	}{
		{"sandbox_nosuch", `{}`, "unknown_tool", "", http.StatusNotFound},
		{"sandbox_exists", `{"containerId":"none","path":"/"}`, "not_found", "containerId", http.StatusNotFound},
		{"sandbox_exists", `{"containerId":"a","path":1}`, "invalid_argument", "path", http.StatusUnprocessableEntity},
		{"sandbox_exists", `{"containerId":"a","path":"/","more":1}`, "invalid_argument", "more", http.StatusUnprocessableEntity},
		{"sandbox_exists", `[]`, "invalid_argument", "", http.StatusUnprocessableEntity},
		{"sandbox_init", `{"containerId":"a"}`, "exists", "containerId", http.StatusConflict},
		{"sandbox_init", `{"imageName":"other"}`, "forbidden", "", http.StatusForbidden},
		{"sandbox_init", `{"projectOutPath":"/tmp/x"}`, "permission", "projectOutPath", http.StatusForbidden},
		{"sandbox_command", `{"containerId":"a","executable":"nosuch"}`, "not_found", "", http.StatusNotFound},
		{"sandbox_read_file", `{"containerId":"a","path":"/workspace"}`, "is_directory", "", http.StatusUnprocessableEntity},
	} {
		_, p := r.tool(tc.tool, tc.args)
		named := tc.location == "" || len(p.Errors) == 1 && p.Errors[0].Location == tc.location
		if p.Code != tc.code || p.Status != tc.status || !named || p.Detail == "" {
			t.Errorf("%s %s: %+v", tc.tool, tc.args, p)
		}
	}
}

// testNormalize: code becomes a module, or its syntax error is returned.
func testNormalize(t *testing.T, r *raw) {
	result, p := r.reply(9, "normalize", `{"code":"Sure:\n`+"```js"+`\nconst n = 6\nn * 7\n`+"```"+`"}`)
	var n struct {
		Code  string
		Error *struct{ Name, Message, Stack, Frame string }
	}
	if err := json.Unmarshal(result, &n); err != nil || n.Error != nil || !strings.Contains(n.Code, "__evaluated") || strings.Contains(n.Code, "Sure") {
		t.Errorf("%s %+v", result, p)
	}
	result, p = r.reply(9, "normalize", `{"code":"1\nlet ="}`)
	if err := json.Unmarshal(result, &n); err != nil || n.Error == nil || n.Error.Name != "SyntaxError" || !strings.Contains(n.Error.Frame, "let =") {
		t.Errorf("%s %+v", result, p)
	}
}

// TestToolsEnd: the sandboxes of tools are their session's. They end with it, and their quota is free again.
func TestToolsEnd(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Settings: func(s *settings.Settings) { s.Tenant.Sandboxes = 3 }})
	first, other := newRaw(t, s, `{}`), newRaw(t, s, `{}`)
	if _, p := first.tool("sandbox_init", `{"containerId":"a"}`); p.Code != "" {
		t.Fatalf("%+v", p)
	}
	if _, p := other.tool("sandbox_exists", `{"containerId":"a","path":"/"}`); p.Code != "not_found" {
		t.Errorf("%+v", p)
	}
	if _, p := other.tool("sandbox_init", `{}`); p.Code != "quota" || p.Status != http.StatusTooManyRequests {
		t.Errorf("%+v", p)
	}
	_ = first.CloseNow()
	harness.WaitFor(t, "the quota is free again", func() bool {
		_, p := other.tool("sandbox_init", `{}`)
		return p.Code == ""
	})
}
