package sandboxtools

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/internal/schema"
)

func TestDecode(t *testing.T) {
	text := "\n{\"containerId\": \"a\", \"executable\": \"\\u006e\\ud83c\\udf89\", \"args\": [\"\", \"b\\n\"], \"timeout\": 1, \"envVars\": [\"A==\"]} "
	var args *schema.Input
	for _, r := range table() {
		if r.Name == "sandbox_command" {
			args = r.args
		}
	}
	got, err := args.Decode([]byte(text), nil)
	want := &CommandArgs{InSandbox: InSandbox{"a"}, Executable: "n🎉", Args: []string{"", "b\n"}, Timeout: 1, EnvVars: []string{"A=="}}
	if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, raw := range []string{"30000", "30000.0", "3e4", "3E+4", "0.3e5", "300000e-1"} {
		got, err := args.Decode([]byte(`{"containerId": "a", "executable": "x", "timeout": `+raw+"}"), nil)
		if a, ok := got.(*CommandArgs); !ok || a.Timeout != 30000 {
			t.Errorf("%s: %v, %v", raw, got, err)
		}
	}
}

// refusals are invalid calls, with the place of the error, and whether the schema rejects
// them too.
var refusals = []struct {
	tool, args, place string
	inSchema          bool
}{
	{"sandbox_exists", `{"containerId": "a"}`, "", true},
	{"sandbox_exists", `{"path": "a"}`, "", true},
	{"sandbox_exists", `{}`, "", true},
	{"sandbox_exists", ``, "", false},
	{"sandbox_exists", `{"containerId": "a", "path": "x", "extra": 1}`, "extra", true},
	{"sandbox_exists", `{"containerId": "a", "Path": "x"}`, "", true},
	{"sandbox_exists", `{"containerId": "a", "path": "x", "path": "x"}`, "", false},
	{"sandbox_exists", `{"containerId": "a", "path": 1}`, "path", true},
	{"sandbox_exists", `{"containerId": "a", "path": null}`, "path", true},
	{"sandbox_exists", `{"containerId": "a", "path": ["x"]}`, "path", true},
	{"sandbox_exists", `{"containerId": "a", "path": ""}`, "path", true},
	{"sandbox_exists", `{"containerId": "a", "path": "x\u0000y"}`, "path", true},
	{"sandbox_exists", `{"containerId": "a", "path": "` + strings.Repeat("x", 4096) + `"}`, "path", true},
	{"sandbox_exists", `{"containerId": "a", "path": "` + strings.Repeat("x", 40_000) + `"}`, "path", true},
	{"sandbox_exists", `{"containerId": "a", "path": "\ud800"}`, "", false},
	{"sandbox_exists", `{"containerId": "a", "path": "\ud800\u0041"}`, "", false},
	{"sandbox_exists", `{"containerId": "a", "path": "\udc00"}`, "", false},
	{"sandbox_exists", `{"containerId": "a", "path": "\\\ud800x"}`, "", false},
	{"sandbox_exists", "{\"containerId\": \"a\", \"path\": \"\xff\"}", "", false},
	{"sandbox_exists", "{\"containerId\": \"a\", \"path\xff\": \"x\"}", "", true},
	{"sandbox_exists", `{"containerId": "../a", "path": "x"}`, "containerId", true},
	{"sandbox_exists", `{"containerId": "a\n", "path": "x"}`, "containerId", true},
	{"sandbox_exists", `{"containerId": "` + strings.Repeat("a", 65) + `", "path": "x"}`, "containerId", true},
	{"sandbox_exists", `{"containerId": "a", "path": "x"} {}`, "", false},
	{"sandbox_exists", `{"containerId": "a", "path": "x"`, "", false},
	{"sandbox_exists", `{"containerId": "a", "path": `, "", false},
	{"sandbox_exists", `{"containerId"`, "", false},
	{"sandbox_exists", `{"containerId": "a",, "path": "x"}`, "", false},
	{"sandbox_exists", `[]`, "", true},
	{"sandbox_exists", `null`, "", true},
	{"sandbox_exists", `"x"`, "", true},
	{"sandbox_exists", `nonsense`, "", false},
	{"sandbox_delete", `{"containerId": "a", "path": "x", "force": "true"}`, "force", true},
	{"sandbox_delete", `{"containerId": "a", "path": "x", "force": 1}`, "force", true},
	{"sandbox_delete", `{"containerId": "a", "path": "x", "recursive": {}}`, "recursive", true},
	{"sandbox_destroy", `{"containerId": "a", "removeContainer": "no"}`, "removeContainer", true},
	{"sandbox_read_file", `{"containerId": "a", "path": "x", "encoding": "latin1"}`, "encoding", true},
	{"sandbox_read_file", `{"containerId": "a", "path": "x", "encoding": ""}`, "encoding", true},
	{"sandbox_write_file", `{"containerId": "a", "path": "x"}`, "", true},
	{"sandbox_write_file", `{"containerId": "a", "path": "x", "content": "` + strings.Repeat("x", 22369625) + `"}`, "content", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 0}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": -1}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 3600001}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 1.5}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 30000.5e-1}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 3e9}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 1e99}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": -0.0}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 03e4}`, "", false},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 3.e4}`, "", false},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 99999999999999999999999999999999999999}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": "30000"}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "args": "y"}`, "args", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "args": ["y", 1]}`, "args[1]", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "args": ["y", ["z"]]}`, "args[1]", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "args": ["\u0000"]}`, "args[0]", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "args": [` + strings.Repeat(`"",`, 8192) + `""]}`, "args", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "envVars": ["A=b", "C"]}`, "envVars[1]", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "envVars": ["ABC"]}`, "envVars[0]", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "envVars": ["=b"]}`, "envVars[0]", true},
	{"sandbox_init", `{"rootPath": "/workspace"}`, "rootPath", true},
	{"sandbox_init", `{"rootPath": "a/../b"}`, "rootPath", true},
	{"sandbox_init", `{"rootPath": "a/"}`, "rootPath", true},
	{"sandbox_init", `{"rootPath": "a//b"}`, "rootPath", true},
	{"sandbox_init", `{"imageName": "` + strings.Repeat("x", 4096) + `"}`, "imageName", true},
	{"sandbox_init", `{"imageName": "/a\u0000"}`, "imageName", true},
	{"sandbox_init", `{"containerName": "a b"}`, "containerName", true},
	{"sandbox_init", `{"containerName": "-a"}`, "containerName", true},
	{"sandbox_init", `{"projectOutPath": false}`, "projectOutPath", true},
	{"sandbox_init", `{"rootPath": "etc"}`, "rootPath", false},
	{"sandbox_init", `{"rootPath": "proc/1"}`, "rootPath", false},
}

func newTestToolbox(t testing.TB, o Options) *Toolbox {
	t.Helper()
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestRefusals(t *testing.T) {
	b := newTestToolbox(t, Options{})
	for _, tc := range refusals {
		_, err := b.Call(t.Context(), tc.tool, json.RawMessage(tc.args))
		e, _ := err.(*Error)
		if e == nil || e.Code != InvalidArgument || e.Place != tc.place || e.Tool != tc.tool {
			t.Errorf("%s %.80s: %#v", tc.tool, tc.args, err)
			continue
		}
		if text := e.Error(); len(text) > 250 || !strings.HasPrefix(text, "gaol: "+tc.tool+": ") {
			t.Errorf("%.300s", text)
		}
	}
	if _, err := b.Call(t.Context(), "sandbox_nosuch", nil); CodeOf(err) != UnknownTool {
		t.Error(err)
	}
	if _, err := b.Call(t.Context(), "sandbox_init", make(json.RawMessage, maxCall+1)); CodeOf(err) != InvalidArgument {
		t.Error(err)
	}
}

// FuzzCall calls every tool with arbitrary text. No call panics, every error has a code,
// and accepted arguments conform to the schema.
func FuzzCall(f *testing.F) {
	for i, tool := range table() {
		f.Add(uint8(i), []byte(samples[tool.Name]))
	}
	for _, tc := range refusals {
		for i, tool := range table() {
			if tool.Name == tc.tool && len(tc.args) < 1000 {
				f.Add(uint8(i), []byte(tc.args))
			}
		}
	}
	f.Add(uint8(0), []byte(`{"containerId": "a", "rootPath": "work"}`))
	// No image is allowed, so no sandbox is created.
	b := newTestToolbox(f, Options{Images: map[string]string{}})
	schemas := compiled(f, func(tool Tool) json.RawMessage { return tool.InputSchema })
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		tool := table()[int(which)%len(table())]
		if tool.Name == "sandbox_init" { // refused for its image
			if len(text) == 0 {
				return
			}
			text = bytes.Replace(text, []byte("{"), []byte(`{"imageName": "none", `), 1)
		}
		_, err := b.Call(t.Context(), tool.Name, text)
		e, _ := err.(*Error)
		if e == nil {
			t.Fatalf("%s %q: %v", tool.Name, text, err)
		}
		switch e.Code {
		case InvalidArgument:
		case NotFound, Permission:
			// null stands for an omitted argument.
			if err := validate(schemas[tool.Name], text); err != nil && !bytes.Contains(text, []byte("null")) {
				t.Errorf("%s %q: accepted, but the schema says: %v", tool.Name, text, err)
			}
		default:
			t.Errorf("%s %q: %v", tool.Name, text, err)
		}
	})
}
