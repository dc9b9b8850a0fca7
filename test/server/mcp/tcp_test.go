package mcp

import (
	"bytes"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/test/server/servertest"
)

// TestStdioTCP uses gaol mcp with a server on TCP, with the right token and another one.
func TestStdioTCP(t *testing.T) {
	url := "http://" + servertest.Start(t, servertest.Options{Tokens: servertest.Tokens(t, "agent")}).Address
	right := gaolMCP(t, alice, url)
	right.Env = append(right.Env, "GAOL_TOKEN="+servertest.Token("agent"))
	testValue(t, dial(t, &mcp.CommandTransport{Command: right}, ""))

	wrong := gaolMCP(t, alice, url)
	wrong.Env = append(wrong.Env, "GAOL_TOKEN="+servertest.Token("other"))
	var stderr bytes.Buffer
	wrong.Stderr = &stderr
	out, err := wrong.Output()
	if err == nil || len(out) > 0 || !strings.Contains(stderr.String(), "Unauthorized") {
		t.Errorf("%v, stdout %q, stderr %q", err, out, &stderr)
	}
}
