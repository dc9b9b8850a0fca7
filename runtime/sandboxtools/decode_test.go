package sandboxtools

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecode(t *testing.T) {
	var got CommandArgs
	text := "\n{\"containerId\": \"a\", \"executable\": \"\\u006e\\ud83c\\udf89\", \"args\": [\"\", \"b\\n\"], \"timeout\": 1, \"envVars\": [\"A==\"]} "
	if err := decode(json.RawMessage(text), &got); err != nil {
		t.Fatal(err)
	}
	want := CommandArgs{ContainerID: "a", Executable: "n🎉", Args: []string{"", "b\n"}, Timeout: 1, EnvVars: []string{"A=="}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := normalize(&got); err != nil || got.WorkingDirectory != "." || got.Timeout != 1 {
		t.Error(got, err)
	}
	var none InitArgs
	if err := decode(nil, &none); err != nil {
		t.Error(err)
	}
	if err := normalize(&none); err != nil || none.RootPath != "workspace" {
		t.Error(none, err)
	}
	for text, want := range map[string]bool{`{"containerId":"a"}`: true, `{"containerId":"a","removeContainer":false}`: false, `{"removeContainer":true,"containerId":"a"}`: true} {
		var d DestroyArgs
		if err := decode(json.RawMessage(text), &d); err != nil || normalize(&d) != nil || *d.RemoveContainer != want {
			t.Error(text, d, err)
		}
	}
}

// refusals are invalid calls, with the place of the error, and whether the schema rejects
// them too.
var refusals = []struct {
	tool, args, place string
	inSchema          bool
}{
	{"sandbox_exists", `{"containerId": "a"}`, "path", true},
	{"sandbox_exists", `{"path": "a"}`, "containerId", true},
	{"sandbox_exists", `{}`, "containerId", true},
	{"sandbox_exists", ``, "containerId", false},
	{"sandbox_exists", `{"containerId": "a", "path": "x", "extra": 1}`, "", true},
	{"sandbox_exists", `{"containerId": "a", "Path": "x"}`, "", true},
	{"sandbox_exists", `{"containerId": "a", "path": "x", "path": "x"}`, "path", false},
	{"sandbox_exists", `{"containerId": "a", "path": 1}`, "path", true},
	{"sandbox_exists", `{"containerId": "a", "path": null}`, "path", true},
	{"sandbox_exists", `{"containerId": "a", "path": ["x"]}`, "path", true},
	{"sandbox_exists", `{"containerId": "a", "path": ""}`, "path", true},
	{"sandbox_exists", `{"containerId": "a", "path": "x\u0000y"}`, "path", false},
	{"sandbox_exists", `{"containerId": "a", "path": "` + strings.Repeat("x", 4096) + `"}`, "path", true},
	{"sandbox_exists", `{"containerId": "a", "path": "` + strings.Repeat("é", 2048) + `"}`, "path", false},
	{"sandbox_exists", `{"containerId": "a", "path": "` + strings.Repeat("x", 40_000) + `"}`, "path", true},
	{"sandbox_exists", `{"containerId": "a", "path": "\ud800"}`, "path", false},
	{"sandbox_exists", `{"containerId": "a", "path": "\ud800\u0041"}`, "path", false},
	{"sandbox_exists", `{"containerId": "a", "path": "\udc00"}`, "path", false},
	{"sandbox_exists", `{"containerId": "a", "path": "\\\ud800x"}`, "path", false},
	{"sandbox_exists", "{\"containerId\": \"a\", \"path\": \"\xff\"}", "path", false},
	{"sandbox_exists", "{\"containerId\": \"a\", \"path\xff\": \"x\"}", "", true},
	{"sandbox_exists", `{"containerId": "../a", "path": "x"}`, "containerId", true},
	{"sandbox_exists", `{"containerId": "a\n", "path": "x"}`, "containerId", true},
	{"sandbox_exists", `{"containerId": "` + strings.Repeat("a", 65) + `", "path": "x"}`, "containerId", true},
	{"sandbox_exists", `{"containerId": "a", "path": "x"} {}`, "", false},
	{"sandbox_exists", `{"containerId": "a", "path": "x"`, "", false},
	{"sandbox_exists", `{"containerId": "a", "path": `, "path", false},
	{"sandbox_exists", `{"containerId"`, "containerId", false},
	{"sandbox_exists", `{"containerId": "a",, "path": "x"}`, "", false},
	{"sandbox_exists", `[]`, "", true},
	{"sandbox_exists", `null`, "", true},
	{"sandbox_exists", `"x"`, "", true},
	{"sandbox_exists", `nonsense`, "", false},
	{"sandbox_delete", `{"containerId": "a", "path": "x", "force": "true"}`, "force", true},
	{"sandbox_delete", `{"containerId": "a", "path": "x", "force": 1}`, "force", true},
	{"sandbox_delete", `{"containerId": "a", "path": "x", "force": null}`, "force", true},
	{"sandbox_delete", `{"containerId": "a", "path": "x", "recursive": {}}`, "recursive", true},
	{"sandbox_destroy", `{"containerId": "a", "removeContainer": "no"}`, "removeContainer", true},
	{"sandbox_destroy", `{"containerId": "a", "removeContainer": null}`, "removeContainer", true},
	{"sandbox_read_file", `{"containerId": "a", "path": "x", "encoding": "latin1"}`, "encoding", true},
	{"sandbox_read_file", `{"containerId": "a", "path": "x", "encoding": ""}`, "encoding", true},
	{"sandbox_write_file", `{"containerId": "a", "path": "x"}`, "content", true},
	{"sandbox_write_file", `{"containerId": "a", "path": "x", "content": "` + strings.Repeat("x", 22369625) + `"}`, "content", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 0}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": -1}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 3600001}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 1.5}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 30000.5e-1}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 3e9}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 1e99}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 30000.00000000000000000001}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": -0.0}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 03e4}`, "timeout", false},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 3.e4}`, "timeout", false},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": 99999999999999999999999999999999999999}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "timeout": "30000"}`, "timeout", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "args": "y"}`, "args", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "args": ["y", 1]}`, "args[1]", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "args": ["y", ["z"]]}`, "args[1]", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "args": ["\u0000"]}`, "args[0]", false},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "args": [` + strings.Repeat(`"",`, 8192) + `""]}`, "args", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "envVars": ["A=b", "C"]}`, "envVars[1]", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "envVars": ["ABC"]}`, "envVars[0]", true},
	{"sandbox_command", `{"containerId": "a", "executable": "x", "envVars": ["=b"]}`, "envVars[0]", true},
	{"sandbox_init", `{"rootPath": "/workspace"}`, "rootPath", true},
	{"sandbox_init", `{"rootPath": "a/../b"}`, "rootPath", true},
	{"sandbox_init", `{"rootPath": "a/"}`, "rootPath", true},
	{"sandbox_init", `{"rootPath": "a//b"}`, "rootPath", true},
	{"sandbox_init", `{"imageName": "` + strings.Repeat("x", 4096) + `"}`, "imageName", true},
	{"sandbox_init", `{"imageName": "/a\u0000"}`, "imageName", false},
	{"sandbox_init", `{"containerName": "a b"}`, "containerName", true},
	{"sandbox_init", `{"containerName": "-a"}`, "containerName", true},
	{"sandbox_init", `{"projectOutPath": false}`, "projectOutPath", true},
	{"sandbox_init", `{"rootPath": "etc"}`, "rootPath", false},
	{"sandbox_init", `{"rootPath": "proc/1"}`, "rootPath", false},
}

// Numbers that JSON Schema counts as integers are accepted, and no others.
func TestParseInteger(t *testing.T) {
	schema := compiled(t, func(tool Tool) json.RawMessage { return tool.InputSchema })["sandbox_command"]
	for raw, want := range map[string]int64{
		"30000": 30000, "30000.0": 30000, "3e4": 30000, "3E+4": 30000, "3.0e4": 30000, "0.3e5": 30000, "300000e-1": 30000, "0.0003e8": 30000,
		"30000.0000000000000000000000000000000000000000": 30000, "3600000": 3600000, "1": 1, "100e-2": 1, "0.1e1": 1,
	} {
		text := `{"containerId": "a", "executable": "x", "timeout": ` + raw + "}"
		var a CommandArgs
		if err := decode(json.RawMessage(text), &a); err != nil || a.Timeout != want {
			t.Errorf("%s: %d, %v", raw, a.Timeout, err)
		}
		if err := validate(schema, []byte(text)); err != nil {
			t.Errorf("%s: the schema says: %v", raw, err)
		}
	}
	for raw, want := range map[string]int64{"-9223372036854775808": math.MinInt64, "9.223372036854775807e18": math.MaxInt64, "-0": 0, "0e99": 0, "0e-99": 0} {
		if n, ok := parseInteger(raw); n != want || !ok {
			t.Errorf("%s: %d, %v", raw, n, ok)
		}
	}
	for _, raw := range []string{"1.5", "1e-1", "9223372036854775808", "1e19", "1e9223372036854775807", "1e-9223372036854775808", "1e99999999999999999999", "[", "{}", "tru", `"1"`} {
		if n, ok := parseInteger(raw); ok {
			t.Errorf("%s: %d", raw, n)
		}
	}
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

// The Go methods check their arguments as Call does.
func TestMethodsValidate(t *testing.T) {
	b := newTestToolbox(t, Options{})
	for place, err := range map[string]error{
		"containerId": errorOf(b.Exists(t.Context(), ExistsArgs{Path: "x"})),
		"path":        errorOf(b.ReadFile(t.Context(), ReadFileArgs{ContainerID: "a"})),
		"encoding":    errorOf(b.WriteFile(t.Context(), WriteFileArgs{ContainerID: "a", Path: "x", Encoding: "x"})),
		"timeout":     errorOf(b.Command(t.Context(), CommandArgs{ContainerID: "a", Executable: "x", Timeout: -1})),
		"args[0]":     errorOf(b.Command(t.Context(), CommandArgs{ContainerID: "a", Executable: "x", Args: []string{"\x00"}})),
		"args":        errorOf(b.Command(t.Context(), CommandArgs{ContainerID: "a", Executable: "x", Args: make([]string, 8193)})),
		"rootPath":    errorOf(b.Init(t.Context(), InitArgs{RootPath: "../x"})),
	} {
		if e, _ := err.(*Error); e == nil || e.Code != InvalidArgument || e.Place != place {
			t.Errorf("%s: %v", place, err)
		}
	}
	if _, err := b.FileInfo(t.Context(), FileInfoArgs{ContainerID: "a", Path: "x"}); CodeOf(err) != NotFound {
		t.Error(err)
	}
}

func errorOf[T any](_ T, err error) error { return err }

// FuzzCall calls every tool with arbitrary text. No call panics, every error carries a code,
// and accepted arguments conform to the schema.
func FuzzCall(f *testing.F) {
	for i, tool := range table {
		f.Add(uint8(i), []byte(samples[tool.name]))
	}
	for _, tc := range refusals {
		for i, tool := range table {
			if tool.name == tc.tool && len(tc.args) < 1000 {
				f.Add(uint8(i), []byte(tc.args))
			}
		}
	}
	f.Add(uint8(0), []byte(`{"containerId": "a", "rootPath": "work"}`))
	// No image is allowed, so no sandbox is created.
	b := newTestToolbox(f, Options{Images: []string{}})
	schemas := compiled(f, func(tool Tool) json.RawMessage { return tool.InputSchema })
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		tool := table[int(which)%len(table)]
		if tool.name == "sandbox_init" { // refused for its image
			if len(text) == 0 {
				return
			}
			text = bytes.Replace(text, []byte("{"), []byte(`{"imageName": "none", `), 1)
		}
		_, err := b.Call(t.Context(), tool.name, text)
		e, _ := err.(*Error)
		if e == nil {
			t.Fatalf("%s %q: %v", tool.name, text, err)
		}
		switch e.Code {
		case InvalidArgument:
		case NotFound, Permission:
			if err := validate(schemas[tool.name], text); err != nil {
				t.Errorf("%s %q: accepted, but the schema says: %v", tool.name, text, err)
			}
		default:
			t.Errorf("%s %q: %v", tool.name, text, err)
		}
	})
}
