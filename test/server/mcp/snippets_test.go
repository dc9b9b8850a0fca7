package mcp

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/settings"
)

// TestSnippetsOverStdio uses the tools for snippets by gaol mcp.
func TestSnippetsOverStdio(t *testing.T) {
	socket := start(t, func(s *settings.Settings) { s.PublicURL = "https://gaol.example.com" })
	s := dial(t, &mcp.CommandTransport{Command: gaolMCP(t, alice, socket)}, "")
	var out struct {
		Facts         struct{ N int }
		PlaygroundURL string
	}
	s.ok("run_in_sandbox", args{"source": "export const N = 6 * 7"}, &out)
	if out.Facts.N != 42 || !strings.HasPrefix(out.PlaygroundURL, "https://gaol.example.com/#src=") {
		t.Errorf("%+v", out)
	}
	s.fails("run_in_sandbox", args{"source": strings.Repeat("a", 8001)}, "input-too-large: ")
	s.fails("run_in_sandbox", args{"source": "throw new Error('no')"}, "runtime-error: ", "no")
	var link struct{ PlaygroundURL string }
	s.ok("playground_link", args{"source": "export const N = 6 * 7"}, &link)
	if link.PlaygroundURL != out.PlaygroundURL {
		t.Errorf("%+v", link)
	}
}
