package session

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/test/server/servertest"
)

// toolsOf are the MCP tools of operations, with the fields that both have in their results.
var toolsOf = map[string]struct {
	name   string
	fields []string
}{
	"evaluate":      {"run_code", []string{"value", "noValue", "cause"}},
	"evaluateIn":    {"run_code", []string{"value", "noValue", "cause"}},
	"evaluateCell":  {"run_code", []string{"value", "noValue", "cause"}},
	"command":       {"run_command", []string{"stdout", "stderr", "exitCode", "cause"}},
	"commandIn":     {"run_command", []string{"stdout", "stderr", "exitCode", "cause"}},
	"createSandbox": {"create_sandbox", []string{"isolation"}},
	"deleteSandbox": {"close_sandbox", nil},
	"writeProcess":  {"write_process", nil},
	"writeFile":     {"write_file", []string{"path", "size"}},
	"listFiles":     {"list_files", []string{"truncated"}},
}

// idsOf are the names of ids in arguments of tools.
var idsOf = map[string]string{"sandbox": "sandboxId", "context": "contextId", "process": "processId"}

// mcpDoor makes requests by MCP, and by HTTP where there is no tool: both have the same sandboxes.
type mcpDoor struct {
	t       *testing.T
	web     *http.Client
	session *mcp.ClientSession
	offered map[string]map[string]any // arguments by tool
	used    map[string]bool           // operations that tools have performed
}

func newMCP(t *testing.T, s *servertest.Server, web *http.Client) *mcpDoor {
	t.Helper()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", s.Socket) }}
	t.Cleanup(transport.CloseIdleConnections)
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://gaol/mcp", HTTPClient: &http.Client{Transport: transport}, MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	d := &mcpDoor{t, web, session, map[string]map[string]any{}, map[string]bool{}}
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		var schema struct{ Properties map[string]any }
		convert(t, tool.InputSchema, &schema)
		d.offered[tool.Name] = schema.Properties
	}
	return d
}

// do makes a request. The reply of a tool is compared with what HTTP's has in common with it.
func (d *mcpDoor) do(s step) (reply, func(reply) reply) {
	d.t.Helper()
	tool := toolsOf[s.operation]
	var in map[string]any
	if json.Unmarshal([]byte(s.in), &in) != nil || tool.name == "" {
		return byHTTP(d.t, d.web, s), nil
	}
	if s.data != "" {
		in["content"] = s.data
	}
	if s.operation == "command" || s.operation == "commandIn" {
		in["args"] = append([]any{}, anyList(in["args"])...) // without, the tool starts a shell
	}
	for from, to := range idsOf {
		if id, ok := in[from]; ok {
			delete(in, from)
			in[to] = id
		}
	}
	if path, ok := in["path"].(string); ok && !strings.HasPrefix(path, "/") || !isSubset(in, d.offered[tool.name]) { // tools have relative paths
		return byHTTP(d.t, d.web, s), nil
	}
	d.used[s.operation] = true
	res, err := d.session.CallTool(soon(d.t), &mcp.CallToolParams{Name: tool.name, Arguments: in})
	if err != nil {
		d.t.Fatalf("%s: %v", tool.name, err)
	}
	common := func(r reply) reply {
		if r.Code != "" {
			return reply{Code: "refused"}
		}
		all, _ := r.Result.(map[string]any)
		return reply{Result: some(all, tool.fields)}
	}
	if res.StructuredContent == nil {
		return reply{Code: "refused"}, common
	}
	var out map[string]any
	convert(d.t, res.StructuredContent, &out)
	got := some(out, tool.fields)
	if id, ok := out[idsOf[s.save]]; ok {
		got["id"] = id // for later steps
	}
	return reply{Result: got}, common
}

// anyList returns a list, nil if v is none.
func anyList(v any) []any {
	list, _ := v.([]any)
	return list
}

func isSubset(names, of map[string]any) bool {
	for name := range names {
		if _, ok := of[name]; !ok {
			return false
		}
	}
	return true
}

// some returns some of the members of an object. Causes are omitted by tools if they are empty.
func some(all map[string]any, names []string) map[string]any {
	few := maps.Clone(all)
	maps.DeleteFunc(few, func(name string, v any) bool { return !slices.Contains(names, name) || name == "cause" && v == "" })
	if few == nil {
		few = map[string]any{}
	}
	return few
}

// convert converts a value to another type with the same JSON.
func convert(t testing.TB, from, to any) {
	t.Helper()
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}
