package session

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"gaol/cmd/gaol/server/tenant"
	protocol "gaol/internal/session"
	"gaol/runtime"
)

// TestBadFrames: a frame that the protocol does not have closes the session with a code.
func TestBadFrames(t *testing.T) {
	url := newServer(t)
	for name, tc := range map[string]struct {
		kind   websocket.MessageType
		frames [][]byte
		want   websocket.StatusCode
	}{
		"text":            {websocket.MessageText, [][]byte{[]byte("hello")}, websocket.StatusProtocolError},
		"empty":           {websocket.MessageBinary, [][]byte{{}}, websocket.StatusProtocolError},
		"unknown kind":    {websocket.MessageBinary, [][]byte{protocol.Append(nil, 9, 1)}, websocket.StatusProtocolError},
		"id 0":            {websocket.MessageBinary, [][]byte{protocol.Append(nil, protocol.KindCancel, 0)}, websocket.StatusProtocolError},
		"bad answer":      {websocket.MessageBinary, [][]byte{protocol.Append(nil, protocol.KindAnswer, 1, []byte("{"))}, websocket.StatusProtocolError},
		"doubled answer":  {websocket.MessageBinary, [][]byte{protocol.Append(nil, protocol.KindAnswer, 1, []byte(`{"a":1,"a":2}`))}, websocket.StatusProtocolError},
		"doubled failure": {websocket.MessageBinary, [][]byte{protocol.Append(nil, protocol.KindFailure, 1, []byte(`{"message":"a","message":"b"}`))}, websocket.StatusProtocolError},
		"unknown failure": {websocket.MessageBinary, [][]byte{protocol.Append(nil, protocol.KindFailure, 1, []byte(`{"message":"a","more":"b"}`))}, websocket.StatusProtocolError},
		"deep answer":     {websocket.MessageBinary, [][]byte{protocol.Append(nil, protocol.KindAnswer, 1, []byte(strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)))}, websocket.StatusProtocolError},
		"bad failure":     {websocket.MessageBinary, [][]byte{protocol.Append(nil, protocol.KindFailure, 1, []byte("[]"))}, websocket.StatusProtocolError},
		"too long":        {websocket.MessageBinary, [][]byte{protocol.Append(nil, protocol.KindRequest, 1, make([]byte, protocol.MaxFrame))}, websocket.StatusMessageTooBig},
	} {
		c := dial(t, url)
		for _, f := range tc.frames {
			_ = c.Write(soon(t), tc.kind, f) // fails if the server has closed the connection already
		}
		if _, _, err := c.Read(soon(t)); websocket.CloseStatus(err) != tc.want {
			t.Errorf("%s: %v, want %d", name, err, tc.want)
		}
	}
}

// TestRequests: bad requests have problems, and the session continues.
func TestRequests(t *testing.T) {
	c := dial(t, newServer(t))
	for i, tc := range []struct{ text, code, detail string }{
		{`{"method":"listSandboxes"}`, "", `{"sandboxes":[]}`},
		{`{"method":"listSandboxes","params":{}}`, "", `{"sandboxes":[]}`},
		{`no JSON`, "invalid", "the request"},
		{`{"method":"listSandboxes","method":"listSandboxes"}`, "invalid", "duplicate"},
		{`{"Method":"list"}`, "invalid", "Method"},
		{`{"method":"listSandboxes"} {}`, "invalid", "line 1, column 28: invalid character"},
		{`{"method":"listSandboxes","params":null}`, "invalid", "expected object"},
		{`{"method":"getSandbox","params":{"sandbox":"x","sandbox":"x"}}`, "invalid", "duplicate"},
		{`{"method":"getSandbox","params":{"Sandbox":"x"}}`, "invalid", "Sandbox"},
		{`{"method":"getSandbox","params":{"sandbox":"\ud800"}}`, "invalid", "surrogate"},
		{`{"method":"createSandbox","params":{"permissions":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}}`, "invalid", "levels"},
		{`{"method":"runIn","params":{"sandbox":"x","code":"1","args":[` + strings.Repeat("1,", 1<<15) + `1]}}`, "invalid", "members"},
		{`{"method":"runIn","params":{"sandbox":"x","code":"1","args":[` + strings.Repeat("1,", 1<<16) + `1]}}`, "invalid", "values"},
		{`{"method":"nosuch"}`, "not_found", `no method \"nosuch\"`},
		{`{"method":"listSandboxes","extra":1}`, "invalid", "extra"},
		{`{"method":"listSandboxes","params":[]}`, "invalid", "expected object"},
		{`{"method":"listSandboxes","params":{"x":1}}`, "invalid", "unexpected property"},
		{`{"method":"runIn","params":{"sandbox":"x","code":"1"}}`, "not_found", "no sandbox"},
		{`{"method":"runIn","params":{"sandbox":"x"}}`, "invalid", "expected required property code"},
		{`{"method":"runIn","params":{"sandbox":"x","code":"1","timeoutMs":-1}}`, "invalid", "expected number \\u003e= 0"},
		{`{"method":"run","params":{"code":"1","timeoutMs":1,"maxTimeout":true}}`, "invalid", "exclude"},
		{`{"method":"spawn","params":{"sandbox":"x"}}`, "not_found", "no sandbox"},
		{`{"method":"signalProcess","params":{"sandbox":"x","process":"p-1","signal":"SIGTERM"}}`, "not_found", "no sandbox"},
		{`{"method":"resizeProcess","params":{"sandbox":"x","process":"p-1","rows":0,"cols":1}}`, "invalid", "rows"},
		{`{"method":"readFile","params":{"sandbox":"x","path":"/a"}}`, "not_found", "no sandbox"},
		{`{"method":"readFile","params":{"sandbox":"x","path":"` + strings.Repeat("a", 5000) + `"}}`, "invalid", "path"},
		{`{"method":"writeFile","params":{"sandbox":"x","path":"/a","mode":"9"}}`, "invalid", "mode"},
		{`{"method":"statFile","params":{"sandbox":"x","pathBytes":"?"}}`, "invalid", "pathBytes"},
		{`{"method":"listFiles","params":{"sandbox":"x","path":"/","limit":10001}}`, "invalid", "limit"},
		{`{"method":"listFiles","params":{"sandbox":"x","path":"/","Recursive":true}}`, "invalid", "unexpected property"},
		{`{"method":"dial","params":{"sandbox":"x","port":65536}}`, "invalid", "port"},
		{`{"method":"dial","params":{"sandbox":"x","port":0}}`, "invalid", "port"},
		{`{"method":"dial","params":{"sandbox":"x","port":1}}`, "not_found", "no sandbox"},
		{`{"method":"waitForPort","params":{"sandbox":"x","port":1,"timeoutMs":-1}}`, "invalid", "timeoutMs"},
		{`{"method":"takeSnapshot","params":{"sandbox":"x","name":"../a"}}`, "invalid", "name"},
		{`{"method":"deleteSnapshot","params":{"name":"a/b"}}`, "invalid", "want 1 to 64"},
		{`{"method":"getUsage","params":{"sandbox":"x"}}`, "not_found", "no sandbox"},
		{`{"method":"createSandbox","params":{"image":"../x"}}`, "invalid", ""},
		{`{"method":"createSandbox","detached":true,"host":{"functions":[{"id":1,"path":["f"]}]}}`, "invalid", "detached"},
		{`{"method":"createSandbox","host":{"functions":[{"id":1,"path":["f"]},{"id":2,"path":["f"]}]}}`, "invalid", "twice"},
		{`{"method":"createSandbox","params":{"globals":{"f":1}},"host":{"functions":[{"id":1,"path":["f","g"]}]}}`, "invalid", "not an object"},
		{`{"method":"createSandbox","host":{"functions":[{"id":1,"path":["f"],"schema":"` + strings.Repeat("x", maxSchema) + `"}]}}`, "invalid", "functions[0]: f: a schema of"},
		{`{"method":"runSnippet","params":{}}`, "invalid", "exactly one of source and files"},
		{`{"method":"runSnippet","params":{"source":"1","files":[]}}`, "invalid", "exactly one of source and files"},
		{`{"method":"runSnippet","params":{"files":[]}}`, "", `"errors":["`},
		{`{"method":"runSnippet","params":{"files":[{"path":"src/main.ts"}]}}`, "invalid", "expected required property source"},
		{`{"method":"runSnippet","params":{"source":1}}`, "invalid", "expected string"},
		{`{"method":"runSnippet","params":{"source":"1","timeoutMs":1.5}}`, "invalid", "expected integer"},
		{`{"method":"runSnippet","params":{"source":"1","adapter":"no"}}`, "invalid", "the server has none"},
		{`{"method":"runSnippet","params":{"source":"1","permissions":"public"}}`, "invalid", "the server has strict, default"},
		{`{"method":"runSnippet","params":{"source":"1","nodeModules":"/etc"}}`, "forbidden", "only a server of one program"},
		{`{"method":"runSnippet","params":{"source":"1","adapterCode":"1"}}`, "forbidden", "only a server of one program"},
		{`{"method":"runSnippet","params":{"source":"1","noLint":true}}`, "forbidden", "only a server of one program"},
		{`{"method":"createSandbox","host":{"functions":[{"id":0,"path":["f"]}]}}`, "invalid", "functions[0].id"},
		{`{"method":"createSandbox","host":{"functions":[{"id":1,"path":[]}]}}`, "invalid", "functions[0].path"},
		{`{"method":"createSandbox","host":{"commands":[{"id":1,"name":"../x"}]}}`, "invalid", "commands[0].name"},
		{`{"method":"createSandbox","host":{"calls":{"calls":-1}}}`, "invalid", "calls.calls"},
		{`{"method":"createSandbox","host":{"more":1}}`, "invalid", "unexpected property"},
		{`{"method":"createSandbox","host":[]}`, "invalid", "expected object"},
		{`{"method":"createSandbox","params":{"store":"/"}}`, "invalid", "unexpected property"},
		{`{"method":"createSandbox","params":{"launcher":"exec"}}`, "invalid", "unexpected property"},
	} {
		id := uint32(i + 1)
		request(t, c, id, tc.text)
		f := receive(t, c)
		if f.ID != id || (f.Kind == protocol.KindResult) != (tc.code == "") || !strings.Contains(string(f.Body), tc.detail) {
			t.Errorf("%s: kind %d, id %d: %s", tc.text, f.Kind, f.ID, f.Body)
			continue
		}
		var p protocol.Problem
		if err := json.Unmarshal(f.Body, &p); tc.code != "" && (err != nil || p.Code != tc.code || p.Status < 400) {
			t.Errorf("%s: %v, %+v", tc.text, err, p)
		}
	}
}

// TestManyRequests: too many concurrent requests, too many bytes of them, and an id in use end the session.
func TestManyRequests(t *testing.T) {
	frame := protocol.Frame{Kind: protocol.KindRequest, ID: 1, Body: []byte("{}")}
	for name, tc := range map[string]struct {
		c    *connection
		want error
	}{
		"an id in use":  {&connection{tasks: map[uint32]*task{1: {}}}, protocol.ErrFrame},
		"many requests": {&connection{tasks: map[uint32]*task{}}, errManyRequests},
		"many bytes":    {&connection{tasks: map[uint32]*task{}, bodies: maxBodies - 1}, errManyRequests},
	} {
		tc.c.ctx = t.Context()
		for id := uint32(10); name == "many requests" && len(tc.c.tasks) < protocol.MaxRequests; id++ {
			tc.c.tasks[id] = &task{}
		}
		if err := tc.c.begin(frame); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPanic: a panic is an error of its request, and the session continues.
func TestPanic(t *testing.T) {
	s := newService(t, func(context.Context, runtime.Options) (*runtime.NodeRuntime, error) { panic("test") })
	c := dial(t, serve(t, New(s, nil)))
	request(t, c, 1, `{"method":"createSandbox"}`)
	if f := receive(t, c); f.Kind != protocol.KindError || !strings.Contains(string(f.Body), `"internal"`) {
		t.Errorf("kind %d: %s", f.Kind, f.Body)
	}
	request(t, c, 2, `{"method":"listSandboxes"}`)
	if f := receive(t, c); f.Kind != protocol.KindResult {
		t.Errorf("kind %d: %s", f.Kind, f.Body)
	}
}

// TestLateFrames: frames for requests and calls that have ended are dropped.
func TestLateFrames(t *testing.T) {
	c := dial(t, newServer(t))
	send(t, c, protocol.Append(nil, protocol.KindCancel, 5))
	send(t, c, protocol.Append(nil, protocol.KindStdin, 5, []byte("x")))
	send(t, c, protocol.Append(nil, protocol.KindStdin, 5))
	send(t, c, protocol.AppendCredit(nil, 5, protocol.Stdout, 10))
	send(t, c, protocol.Append(nil, protocol.KindAnswer, 5, []byte("1")))
	send(t, c, protocol.Append(nil, protocol.KindFailure, 5, []byte(`{"message":"x"}`)))
	request(t, c, 1, `{"method":"listSandboxes"}`)
	if f := receive(t, c); f.Kind != protocol.KindResult {
		t.Errorf("kind %d: %s", f.Kind, f.Body)
	}
}

// A stopping server refuses sessions from clients. It accepts sessions from other nodes, because their sandboxes may have moved, but
// performs no operation.
func TestSessionWhileStopping(t *testing.T) {
	s := newService(t, nil)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := New(s, nil)
	_, response, err := websocket.Dial(t.Context(), serve(t, h), &websocket.DialOptions{Subprotocols: []string{protocol.Protocol}})
	if err == nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a client: %v", err)
	}
	c := dial(t, serveAs(t, h, &tenant.Tenant{Name: "uid:1", Forwarded: true}))
	request(t, c, 1, `{"method": "run", "params": {"code": "1"}}`)
	if f := receive(t, c); f.Kind != protocol.KindError || !strings.Contains(string(f.Body), `"draining"`) {
		t.Errorf("a run: %v %s", f.Kind, f.Body)
	}
}
