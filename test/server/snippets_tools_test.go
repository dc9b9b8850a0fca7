package server

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// connect connects an MCP client.
func connect(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := c.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

func overHTTP(t *testing.T, s *servertest.Server, user servertest.User) *mcp.ClientSession {
	t.Helper()
	return connect(t, &mcp.StreamableClientTransport{Endpoint: "http://gaol/mcp", HTTPClient: s.Client(t, user), MaxRetries: -1})
}

// call calls a tool. The result has one text, which is returned.
func call(t *testing.T, cs *mcp.ClientSession, name string, args any) (*mcp.CallToolResult, string) {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(res.Content) != 1 {
		t.Fatalf("%s: %d blocks", name, len(res.Content))
	}
	return res, res.Content[0].(*mcp.TextContent).Text
}

// structured returns the structured content of a result, with the names of its fields.
func structured(t *testing.T, res *mcp.CallToolResult) (o struct {
	output
	PlaygroundURL string
}, keys []string,
) {
	t.Helper()
	text, err := json.Marshal(res.StructuredContent)
	var fields map[string]any
	for _, into := range []any{&o, &fields} {
		if err == nil {
			err = json.Unmarshal(text, into)
		}
	}
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return o, slices.Sorted(maps.Keys(fields))
}

func testTools(t *testing.T, s *servertest.Server) {
	cs := overHTTP(t, s, snippetUser)
	checkTools(t, cs)
	const source = "export const n: number = 1; console.log('hi', { n })"
	res, text := call(t, cs, "run_in_sandbox", object{"source": source})
	o, keys := structured(t, res)
	if want := slices.Concat(sixKeys[:5], []string{"playgroundUrl"}, sixKeys[5:]); res.IsError || !slices.Equal(keys, want) {
		t.Errorf("%t, %v", res.IsError, keys)
	}
	if !slices.Equal(o.Logs, []string{`[log] hi {"n":1}`}) || o.Facts["n"] != 1.0 || !strings.Contains(text, "[log] hi") || !strings.Contains(text, `facts: {"n":1}`) {
		t.Errorf("%+v\n%s", o, text)
	}
	fragment, ok := strings.CutPrefix(o.PlaygroundURL, "https://gaol.example.com/play/#")
	if in := harness.DecodeLink(t, fragment); !ok || in.Source != source {
		t.Errorf("%q: %+v", o.PlaygroundURL, in)
	}
	res, text = call(t, cs, "run_in_sandbox", object{"files": []object{file("src/main.ts", "console.log(1); throw new RangeError('far')")}})
	if o, _ := structured(t, res); !res.IsError || len(o.Errors) != 1 || !strings.Contains(text, "[log] 1\nruntime-error: ") || !strings.Contains(text, "RangeError: far") {
		t.Errorf("%+v\n%s", o, text)
	}
	res, _ = call(t, cs, "run_in_sandbox", object{"source": forever, "timeoutMs": 100})
	if o, _ := structured(t, res); !res.IsError || !o.TimedOut || o.PlaygroundURL == "" {
		t.Errorf("%+v", o)
	}
	// A result fits into what clients accept, and is valid JSON still.
	res, text = call(t, cs, "run_in_sandbox", object{"source": "console.log('é'.repeat(50_000)); export const long = 'é'.repeat(50_000)"})
	if all, _ := json.Marshal(res); len(all) > 100_000 || res.IsError || !strings.Contains(text, "[cut") {
		t.Errorf("%d bytes: %.300s", len(all), text)
	}
}

// checkTools checks the schemas by which models call the tools.
func checkTools(t *testing.T, cs *mcp.ClientSession) {
	t.Helper()
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*mcp.Tool{}
	for _, tool := range list.Tools {
		found[tool.Name] = tool
	}
	run := found["run_in_sandbox"]
	if run == nil || found["playground_link"] == nil {
		t.Fatalf("%v", slices.Sorted(maps.Keys(found)))
	}
	text, err := json.Marshal(run.InputSchema)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"maxLength":8000`, `"minLength":1`, `"maxItems":10`, `"minItems":1`, `"additionalProperties":false`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

var (
	main = file("src/main.ts", "1")

	badSnippets = map[string]struct {
		args any
		code string
	}{
		"nothing":         {object{}, "input-invalid"},
		"both":            {object{"source": "1", "files": []object{main}}, "input-invalid"},
		"empty":           {object{"source": ""}, "input-invalid"},
		"number":          {object{"source": 1}, "input-invalid"},
		"unknown":         {object{"source": "1", "adapter": "none"}, "input-invalid"},
		"other case":      {object{"Source": "1"}, "input-invalid"},
		"half":            {object{"source": "1", "timeoutMs": 100.5}, "input-invalid"},
		"no files":        {object{"files": []object{}}, "input-invalid"},
		"many files":      {object{"files": slices.Repeat([]object{main}, 11)}, "input-invalid"},
		"no entry":        {object{"files": []object{file("src/x.ts", "1")}}, "input-invalid"},
		"path":            {object{"files": []object{main, file("/etc/x.ts", "1")}}, "input-invalid"},
		"long source":     {object{"source": strings.Repeat("a", 8001)}, "input-too-large"},
		"long in UTF-16":  {object{"source": strings.Repeat("😀", 4001)}, "input-too-large"},
		"large files":     {object{"files": []object{main, file("src/x.ts", strings.Repeat("a", 200_000))}}, "input-too-large"},
		"huge files":      {object{"files": []object{file("src/main.ts", strings.Repeat("a", 2<<20))}}, "input-too-large"},
		"negative number": {object{"files": -1}, "input-invalid"},
	}
)

// Each failure is a result that begins with its code.
func testToolFailures(t *testing.T, s *servertest.Server) {
	cs := overHTTP(t, s, snippetUser)
	for name, c := range badSnippets {
		res, text := call(t, cs, "run_in_sandbox", c.args)
		if !res.IsError || !strings.HasPrefix(text, c.code+": ") || res.StructuredContent != nil {
			t.Errorf("%s: %.200s, want %s", name, text, c.code)
		}
	}
	res, text := call(t, cs, "run_in_sandbox", object{"source": "//" + strings.Repeat("é", 7998)})
	if res.IsError {
		t.Errorf("8,000 characters: %.200s", text)
	}
	if o, _ := structured(t, res); o.PlaygroundURL != "" {
		t.Error("a link to 15,998 bytes")
	}
	es := follow(t, s, busy, path, object{"source": forever, "timeoutMs": 10_000})
	es.logged("[log] started")
	if res, text := call(t, overHTTP(t, s, busy), "run_in_sandbox", object{"source": "1"}); !res.IsError || !strings.HasPrefix(text, "runtime-error: your quota runs is exhausted") {
		t.Errorf("%.200s", text)
	}
	es.cancel()
	waitForRun(t, s, busy)
}

func testLinks(t *testing.T, s *servertest.Server) {
	cs := overHTTP(t, s, snippetUser)
	files := []object{file("src/main.ts", "import './x.js'"), file("src/x.ts", "console.log(1)")}
	res, text := call(t, cs, "playground_link", object{"files": files})
	o, keys := structured(t, res)
	fragment, ok := strings.CutPrefix(o.PlaygroundURL, "https://gaol.example.com/play/#")
	if in := harness.DecodeLink(t, fragment); !ok || len(in.Files) != 2 || in.Files[1].Source != "console.log(1)" || text != o.PlaygroundURL || len(keys) != 1 {
		t.Errorf("%q: %+v", o.PlaygroundURL, in)
	}
	if res, text := call(t, cs, "playground_link", object{"source": strings.Repeat("a", 8000)}); res.IsError {
		t.Error(text)
	}
	for name, c := range map[string]struct {
		args any
		code string
	}{
		"nothing":     {object{}, "input-invalid"},
		"empty":       {object{"source": ""}, "input-invalid"},
		"time":        {object{"source": "1", "timeoutMs": 100}, "input-invalid"},
		"no files":    {object{"files": []object{}}, "input-invalid"},
		"path":        {object{"files": []object{file("src/main.ts", "1"), file("../x.ts", "1")}}, "input-invalid"},
		"no entry":    {object{"files": []object{file("src/x.ts", "1")}}, "input-invalid"},
		"long source": {object{"source": strings.Repeat("a", 8001)}, "input-too-large"},
		"bytes":       {object{"source": strings.Repeat("é", 4001)}, "input-too-large"},
		"large files": {object{"files": []object{file("src/main.ts", strings.Repeat("a", 4001)), file("src/x.ts", strings.Repeat("a", 4001))}}, "input-too-large"},
	} {
		if res, text := call(t, cs, "playground_link", c.args); !res.IsError || !strings.HasPrefix(text, c.code+": ") {
			t.Errorf("%s: %.200s", name, text)
		}
	}
	plain := overHTTP(t, servertest.Start(t, servertest.Options{}), snippetUser)
	if res, text := call(t, plain, "playground_link", object{"source": "1"}); !res.IsError || !strings.Contains(text, "--public-url") {
		t.Errorf("without a public URL: %s", text)
	}
}

// While the playground is off, there are no links to it, also for clients that have connected before.
func testNoPlayground(t *testing.T, s *servertest.Server) {
	cs := overHTTP(t, s, snippetUser)
	previous := s.Settings()
	off := *previous
	off.Playground.Off = true
	s.Reload(&off, servertest.Tokens(t, "ci"))
	defer s.Reload(previous, servertest.Tokens(t, "ci"))
	res, text := call(t, cs, "run_in_sandbox", object{"source": "export const n = 1"})
	if o, keys := structured(t, res); res.IsError || o.PlaygroundURL != "" || !slices.Equal(keys, sixKeys) || strings.Contains(text, "playground") {
		t.Errorf("%v: %s", keys, text)
	}
	if res, text := call(t, cs, "playground_link", object{"source": "1"}); !res.IsError || !strings.Contains(text, "no playground") {
		t.Errorf("a call: %s", text)
	}
	list, err := overHTTP(t, s, servertest.User{UID: 61899, GID: snippetUser.GID}).ListTools(t.Context(), nil)
	if err != nil || slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == "playground_link" }) {
		t.Errorf("a new tenant: %v, %v", list, err)
	}
}
