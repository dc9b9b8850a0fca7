package mcp

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/settings"
	"gaol/runtime"
)

// TestOneIsolation: without a choice there is no argument, and the descriptions name the isolation.
func TestOneIsolation(t *testing.T) {
	s := connect(t, start(t, nil), alice, "")
	tools := toolsOf(t, s)
	for _, name := range []string{"create_sandbox", "sandbox_init"} {
		if about := tools[name].Description; !strings.HasSuffix(about, " Its isolation is native.") {
			t.Errorf("%s: %q", name, about)
		}
	}
	if schema := schemaOf(t, tools["create_sandbox"]); strings.Contains(schema, `"isolation"`) {
		t.Error(schema)
	}
	s.fails("create_sandbox", args{"isolation": "runc"}, "isolation")
	testNative(s, args{})
}

// TestIsolations: with a choice there is an argument that lists the names, the default one first.
func TestIsolations(t *testing.T) {
	s := connect(t, start(t, func(set *settings.Settings) {
		for _, program := range []string{"runc", "/usr/bin/kata-runtime"} {
			oci := runtime.OCIOptions{Runtime: program}
			set.Allowed = append(set.Allowed, settings.Isolation{Name: filepath.Base(program), Kind: runtime.IsolationOCI, OCI: oci})
		}
	}), alice, "")
	if schema := schemaOf(t, toolsOf(t, s)["create_sandbox"]); !strings.Contains(schema, `"enum":["native","runc","kata-runtime"]`) {
		t.Error(schema)
	}
	for _, name := range []string{"crun", "oci=/usr/bin/kata-runtime", "oci=/bin/sh"} {
		s.fails("create_sandbox", args{"isolation": name}, "isolation")
	}
	testNative(s, args{})
	testNative(s, args{"isolation": "native"})
}

// testNative creates a sandbox that must be native.
func testNative(s *session, a args) {
	s.t.Helper()
	var out struct{ SandboxID, Isolation string }
	if s.ok("create_sandbox", a, &out); out.Isolation != "native" {
		s.t.Errorf("%v: %+v", a, out)
	}
	s.ok("close_sandbox", args{"sandboxId": out.SandboxID}, nil)
}

func toolsOf(t *testing.T, s *session) map[string]*mcp.Tool {
	t.Helper()
	all := map[string]*mcp.Tool{}
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all[tool.Name] = tool
	}
	return all
}

func schemaOf(t *testing.T, tool *mcp.Tool) string {
	t.Helper()
	text, err := json.Marshal(tool.InputSchema)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
