package session

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	protocol "gaol/internal/session"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// raw is a session of a client that sends any frames.
type raw struct {
	*websocket.Conn
	t       testing.TB
	sandbox string
}

// newRaw opens a session with a sandbox.
func newRaw(t testing.TB, s *servertest.Server, params string) *raw {
	t.Helper()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", s.Socket) }}
	c, _, err := websocket.Dial(soon(t), "ws://gaol/v1/session", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, Subprotocols: []string{protocol.Protocol},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	c.SetReadLimit(protocol.MaxFrame)
	r := &raw{Conn: c, t: t}
	r.request(1, "createSandbox", params)
	var info struct{ ID string }
	if err := json.Unmarshal(r.until(1, protocol.KindResult), &info); err != nil {
		t.Fatal(err)
	}
	r.sandbox = info.ID
	return r
}

func (r *raw) send(frame []byte) {
	r.t.Helper()
	if err := r.Write(soon(r.t), websocket.MessageBinary, frame); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) request(id uint32, method, params string) {
	r.t.Helper()
	params = strings.ReplaceAll(params, "SB", r.sandbox)
	r.send(protocol.Append(nil, protocol.KindRequest, id, []byte(`{"method":"`+method+`","params":`+params+`}`)))
}

// next returns the next frame.
func (r *raw) next() (protocol.Frame, error) {
	_, message, err := r.Read(soon(r.t))
	if err != nil {
		return protocol.Frame{}, err
	}
	return protocol.Parse(protocol.Server, message)
}

// until returns the body of the next frame of a kind, and drops those before.
func (r *raw) until(id uint32, kind protocol.Kind) []byte {
	r.t.Helper()
	for {
		f, err := r.next()
		if err != nil {
			r.t.Fatal(err)
		}
		if f.ID == id && f.Kind == kind {
			return f.Body
		}
		if f.ID == id && (f.Kind == protocol.KindError || f.Kind == protocol.KindResult) {
			r.t.Fatalf("request %d ended: %s", id, f.Body)
		}
	}
}

// TestSchemaIsEnforced: the server rejects calls whose arguments do not match.
func TestSchemaIsEnforced(t *testing.T) {
	r := newRaw(t, servertest.Start(t, servertest.Options{}),
		`{},"host":{"functions":[{"id":9,"path":["f"],"schema":{"type":"array","prefixItems":[{"type":"integer"}],"minItems":1}}]}`)
	r.request(2, "runIn", `{"sandbox":"SB","code":"const t = (...a) => { try { return f(...a) } catch (e) { return e.code } }; __return([t('x'), t(), t(5)])"}`)
	call := r.until(1, protocol.KindCall)
	if number, args := (protocol.Frame{Body: call}).Call(); number != 9 || string(args) != "[5]" {
		t.Errorf("function %d, %s", number, args)
	}
	r.send(protocol.Append(nil, protocol.KindAnswer, 1, []byte(`{"x":[6]}`)))
	var res struct{ Value json.RawMessage }
	if err := json.Unmarshal(r.until(2, protocol.KindResult), &res); err != nil || string(res.Value) != `["ERR_ARGUMENTS","ERR_ARGUMENTS",{"x":[6]}]` {
		t.Errorf("%v %s", err, res.Value)
	}
}

// TestInvalidSchema: functions whose schema is not valid are refused with the reason, and the session continues.
func TestInvalidSchema(t *testing.T) {
	r := newRaw(t, servertest.Start(t, servertest.Options{}), `{}`)
	id := uint32(1)
	for schema, reason := range map[string]string{
		`7`:                                "f: the schema: invalid schema",
		`{"type":1}`:                       "f: the schema: invalid schema",
		`{"$ref":"https://example.com/a"}`: "f: the schema: invalid schema",
		`{"prefixItems":[{"$ref":"#/$defs/missing"}]}`: "f: the schema: invalid schema",
	} {
		for method, params := range map[string]string{"createSandbox": `{}`, "evaluate": `{"code":"1"}`} {
			id++
			r.request(id, method, params+`,"host":{"functions":[{"id":1,"path":["f"],"schema":`+schema+`}]}`)
			if text := string(r.until(id, protocol.KindError)); !strings.Contains(text, `"invalid"`) || !strings.Contains(text, reason) {
				t.Errorf("%s: %s: %s", method, schema, text)
			}
		}
	}
}

// TestEndlessSchema: a schema that refers to itself fails the calls, and nothing else.
func TestEndlessSchema(t *testing.T) {
	r := newRaw(t, servertest.Start(t, servertest.Options{}), `{},"host":{"functions":[{"id":9,"path":["f"],"schema":{"$ref":"#"}},{"id":8,"path":["g"],"schema":{"type":"array"}}]}`)
	r.request(2, "runIn", `{"sandbox":"SB","code":"let code = ''; try { f(1) } catch (e) { code = e.code } __return([code, g(2)])"}`)
	if number, args := (protocol.Frame{Body: r.until(1, protocol.KindCall)}).Call(); number != 8 || string(args) != "[2]" {
		t.Errorf("function %d, %s", number, args)
	}
	r.send(protocol.Append(nil, protocol.KindAnswer, 1, []byte(`3`)))
	var res struct{ Value json.RawMessage }
	if err := json.Unmarshal(r.until(2, protocol.KindResult), &res); err != nil || string(res.Value) != `["ERR_ARGUMENTS",3]` {
		t.Errorf("%v %s", err, res.Value)
	}
}

// TestEvaluateOnceCalls: a snippet in a separate sandbox can call functions of the client.
func TestEvaluateOnceCalls(t *testing.T) {
	r := newRaw(t, servertest.Start(t, servertest.Options{}), `{}`)
	r.request(2, "evaluate", `{"globals":{"x":2},`+
		`"code":"console.log(x); let refused = ''; const n = api.f(x); try { api.f(x) } catch (e) { refused = e.code } [n, refused]"},"events":true,"host":{"functions":[{"id":8,"path":["api","f"]}],"calls":{"calls":1}}`)
	logged, called := false, false
	for !logged || !called { // in any order
		f, err := r.next()
		switch {
		case err != nil:
			t.Fatal(err)
		case f.Kind == protocol.KindEvent:
			logged = logged || strings.Contains(string(f.Body), `"text":"2"`)
		case f.Kind == protocol.KindCall:
			called = true
			if number, args := f.Call(); number != 8 || string(args) != "[2]" {
				t.Errorf("function %d, %s", number, args)
			}
		case f.Kind == protocol.KindError:
			t.Fatalf("%s", f.Body)
		}
	}
	r.send(protocol.Append(nil, protocol.KindAnswer, 1, []byte(`5`)))
	want := `{"value":[5,"ERR_TOO_MANY_CALLS"],"error":null,`
	if text := r.until(2, protocol.KindResult); !strings.HasPrefix(string(text), want) || !strings.Contains(string(text), `"denials":[]`) {
		t.Errorf("%s, want %s", text, want)
	}
}

// TestNoCredit: without credit, a run that floods its output sends one window, and can be canceled.
func TestNoCredit(t *testing.T) {
	r := newRaw(t, servertest.Start(t, servertest.Options{}), `{}`)
	r.request(2, "commandIn", `{"sandbox":"SB","command":"sh","args":["-c","while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxx; done"]},"events":true`)
	bytes := 0
	for bytes < protocol.Window {
		bytes += len(r.until(2, protocol.KindStdout))
	}
	if bytes > protocol.Window+protocol.MaxChunk {
		t.Errorf("%d bytes without credit", bytes)
	}
	r.request(3, "listSandboxes", `{}`) // the session continues
	for {
		f, err := r.next()
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind == protocol.KindStdout {
			t.Fatalf("%d bytes beyond the window", len(f.Body))
		}
		if f.ID == 3 {
			break
		}
	}
	r.send(protocol.Append(nil, protocol.KindCancel, 2))
	if text := r.until(2, protocol.KindResult); !strings.Contains(string(text), `"cause":"canceled"`) {
		t.Errorf("%s", text)
	}
}

// TestProcessEvents: a process with events has its denials as events.
func TestProcessEvents(t *testing.T) {
	r := newRaw(t, servertest.Start(t, servertest.Options{}), `{}`)
	r.request(2, "spawn", `{"sandbox":"SB","code":"console.log('out'); fetch('http://192.0.2.1/').catch(() => {})","permissions":{"network":"deny"}},"events":true`)
	if text := r.until(2, protocol.KindEvent); !strings.Contains(string(text), `"started"`) {
		t.Errorf("%s", text)
	}
	if text := r.until(2, protocol.KindStdout); string(text) != "out\n" {
		t.Errorf("%q", text)
	}
	if text := r.until(2, protocol.KindEvent); !strings.Contains(string(text), `"denial"`) {
		t.Errorf("%s", text)
	}
	r.until(2, protocol.KindResult)
}

// TestFileWithoutCredit: without credit, one window of a file is sent, and the rest when there is some.
func TestFileWithoutCredit(t *testing.T) {
	r := newRaw(t, servertest.Start(t, servertest.Options{}), `{}`)
	r.request(2, "commandIn", `{"sandbox":"SB","command":"sh","args":["-c","yes | head -c 1000000 > file"]}`)
	r.until(2, protocol.KindResult)
	r.request(3, "readFile", `{"sandbox":"SB","path":"/workspace/file"}`)
	bytes := 0
	for bytes < protocol.Window {
		bytes += len(r.until(3, protocol.KindStdout))
	}
	r.request(4, "statFile", `{"sandbox":"SB","path":"/workspace/file"}`)
	for {
		f, err := r.next()
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind == protocol.KindStdout {
			t.Fatalf("%d bytes beyond the window", len(f.Body))
		}
		if f.ID == 4 {
			break
		}
	}
	for returned := 0; bytes < 1_000_000; {
		r.send(protocol.AppendCredit(nil, 3, protocol.Stdout, uint32(bytes-returned)))
		returned = bytes
		bytes += len(r.until(3, protocol.KindStdout))
	}
	if text := r.until(3, protocol.KindResult); bytes != 1_000_000 || !strings.Contains(string(text), `"size":1000000`) {
		t.Errorf("%d bytes: %s", bytes, text)
	}
}

// TestTooMuchInput: a client that sends more input than it has credit for is disconnected, and
// what it has made ends.
func TestTooMuchInput(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	r := newRaw(t, s, `{}`)
	r.request(2, "spawn", `{"sandbox":"SB","command":"sleep","args":["1000"]},"events":true,"stdin":true`)
	r.until(2, protocol.KindEvent)
	for range 64 {
		if r.Write(soon(t), websocket.MessageBinary, protocol.Append(nil, protocol.KindStdin, 2, make([]byte, protocol.MaxChunk))) != nil {
			break
		}
	}
	for {
		if _, err := r.next(); err != nil {
			if websocket.CloseStatus(err) != websocket.StatusProtocolError {
				t.Errorf("%v", err)
			}
			break
		}
	}
	c := dial(t, s)
	harness.WaitFor(t, "the sandbox is gone", func() bool {
		list, err := c.Sandboxes(soon(t))
		return err == nil && len(list) == 0
	})
}

// TestClientVanishes: everything that a client has created ends when its connection breaks, also in the middle of a
// call.
func TestClientVanishes(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	r := newRaw(t, s, `{},"host":{"functions":[{"id":1,"path":["f"]}]}`)
	r.request(2, "runIn", `{"sandbox":"SB","code":"f()"}`)
	r.until(1, protocol.KindCall)
	if err := r.CloseNow(); err != nil {
		t.Fatal(err)
	}
	c := dial(t, s)
	harness.WaitFor(t, "the sandbox is gone", func() bool {
		list, err := c.Sandboxes(soon(t))
		return err == nil && len(list) == 0
	})
}
