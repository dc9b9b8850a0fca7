package server

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"gaol/runtime/resultjson"
	"gaol/test/server/servertest"
)

// The tenants.
var (
	ada = servertest.User{UID: 62001, GID: 62001}
	ben = servertest.User{UID: 62002, GID: 62002}
)

// tenantClient is a tenant's client.
type tenantClient struct {
	*http.Client
	*servertest.Server
}

func newClient(t *testing.T, s *servertest.Server, user servertest.User) tenantClient {
	return tenantClient{s.Client(t, user), s}
}

// send sends a request, and decodes the response into a value unless that is nil.
func (c tenantClient) send(t *testing.T, method, path string, body any, status int, into any) servertest.Problem {
	t.Helper()
	r := servertest.Send(t, c.Client, method, path, body)
	p := r.Want(t, status)
	if into != nil && r.Status == status {
		r.Into(t, into)
	}
	return p
}

// object is a body of JSON.
type object = map[string]any

// sandbox creates a sandbox, which ends with the server, and returns its path.
func (c tenantClient) sandbox(t *testing.T, body object) string {
	t.Helper()
	if body == nil {
		body = object{}
	}
	var info resultjson.SandboxInfo
	c.send(t, "POST", "/v1/sandboxes", body, http.StatusCreated, &info)
	return "/v1/sandboxes/" + info.ID
}

// spawn starts a process and returns its path.
func (c tenantClient) spawn(t *testing.T, sandbox string, body object) string {
	t.Helper()
	var info resultjson.ProcessInfo
	c.send(t, "POST", sandbox+"/processes", body, http.StatusCreated, &info)
	if info.State != resultjson.Running || info.PID <= 1 {
		t.Errorf("started: %+v", info)
	}
	return sandbox + "/processes/" + info.ID
}

// wait waits for the end of a process.
func (c tenantClient) wait(t *testing.T, process string) (info resultjson.ProcessInfo) {
	t.Helper()
	c.send(t, "GET", process+"/wait", nil, http.StatusOK, &info)
	if info.State != resultjson.Ended || info.Result == nil || info.Ended == nil {
		t.Fatalf("ended: %+v", info)
	}
	return info
}

// write writes to a process.
func (c tenantClient) write(t *testing.T, process string, body object) {
	t.Helper()
	c.send(t, "POST", process+"/stdin", body, http.StatusNoContent, nil)
}

// events is a response of server-sent events.
type events struct {
	*http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
}

// event is a server-sent event.
type event struct{ id, name, data string }

// follow sends a request whose response is events. The test's end closes it.
func (c tenantClient) follow(t *testing.T, method, path string, body any, last string) *events {
	t.Helper()
	e := c.request(t, method, path, body, last)
	if e.StatusCode != http.StatusOK || e.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %s: %s, %s", method, path, e.Status, e.Header.Get("Content-Type"))
	}
	return e
}

func (c tenantClient) request(t *testing.T, method, path string, body any, last string) *events {
	t.Helper()
	text := ""
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, method, "http://gaol"+path, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	res, err := c.Do(r) //nolint:bodyclose // vanish closes it
	if err != nil {
		t.Fatal(err)
	}
	e := &events{res, bufio.NewReader(res.Body), cancel}
	t.Cleanup(e.vanish)
	return e
}

// vanish closes the connection.
func (e *events) vanish() {
	e.cancel()
	_ = e.Body.Close()
}

// next returns the next event, or false at the end.
func (e *events) next(t *testing.T) (found event, ok bool) {
	t.Helper()
	for {
		line, err := e.lines.ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ": ")
		switch {
		case err != nil:
			if found != (event{}) {
				t.Fatalf("half an event: %+v", found)
			}
			return found, false
		case line == "" && found.name != "":
			return found, true
		case field == "id":
			found.id = value
		case field == "event":
			found.name = value
		case field == "data":
			found.data += value
		}
	}
}

// into decodes the data of an event.
func (e event) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.data), v); err != nil {
		t.Fatalf("%+v: %v", e, err)
	}
}

// output returns the bytes of an event of output, and nothing of other events.
func (e event) output(t *testing.T) string {
	t.Helper()
	if e.name != "stdout" && e.name != "stderr" {
		return ""
	}
	var o resultjson.Output
	e.into(t, &o)
	if o.Bytes != nil {
		return string(o.Bytes)
	}
	return o.Text
}

// until reads until the output contains a text, and returns the last event.
func (e *events) until(t *testing.T, text string) event {
	t.Helper()
	all := ""
	for {
		next, ok := e.next(t)
		if !ok {
			t.Fatalf("no %q in the output: %q", text, all)
		}
		if all += next.output(t); strings.Contains(all, text) {
			return next
		}
	}
}

// rest reads all remaining events.
func (e *events) rest(t *testing.T) (all []event) {
	t.Helper()
	for {
		next, ok := e.next(t)
		if !ok {
			return all
		}
		all = append(all, next)
	}
}
