package server

import (
	"net/http"
	"strings"
	"testing"

	"gaol/test/server/servertest"
)

// A body that is not an object of the right form is a problem.
func testBadRequests(t *testing.T, s *servertest.Server) {
	c := s.Client(t, snippetUser)
	for _, r := range []struct {
		body   string
		status int
	}{
		{``, 400}, {`{`, 400}, {`null`, 400}, {`[]`, 400}, {`"1"`, 400}, {`{}`, 400}, {`{"source":"1"} 1`, 400},
		{`{"source":null}`, 400}, {`{"source":1}`, 400}, {`{"source":["1"]}`, 400},
		{`{"source":"1","files":[]}`, 400}, {`{"source":"1","files":[{"path":"src/main.ts","source":"1"}]}`, 400},
		{`{"files":{}}`, 400}, {`{"files":["1"]}`, 400}, {`{"files":[{"path":"src/main.ts"}]}`, 400}, {`{"files":[{"source":"1"}]}`, 400},
		{`{"files":[{"path":"src/main.ts","source":"1","mode":1}]}`, 400}, {`{"files":[null]}`, 400},
		{`{"source":"1","timeoutMs":"1"}`, 400}, {`{"source":"1","timeoutMs":1.5}`, 400}, {`{"source":"1","timeoutMs":1e400}`, 400}, {`{"source":"1","timeoutMs":{}}`, 400},
		{`{"source":"1","adapter":"react"}`, 400}, {`{"source":"1","adapter":"../x"}`, 400}, {`{"source":"1","adapter":1}`, 400}, {`{"source":"1","adapter":"` + strings.Repeat("a", 1000) + `"}`, 400},
		{`{"source":"1","permissions":"all"}`, 400}, {`{"source":"1","permissions":{"network":"allow"}}`, 400}, {`{"source":"1","permissions":"public"}`, 400},
		{`{"source":"1","nodeModules":"/etc"}`, 403}, {`{"source":"1","Host":{"NodeModules":"/etc"}}`, 400}, {`{"source":"1","host":{}}`, 400}, {`{"Source":"1"}`, 400}, {`{"source":"1","__proto__":{}}`, 400},
		{`{"source":"1","source":"2"}`, 400}, {`{"source":"\ud800"}`, 400}, {"{\"source\":\"\xff\"}", 400},
	} {
		res := servertest.Send(t, c, http.MethodPost, path, r.body)
		if res.Want(t, r.status); t.Failed() {
			t.Fatalf("%.100s", r.body)
		}
	}
	servertest.Send(t, c, http.MethodPost, path+"?x=1", `{"source":"1"}`).Want(t, http.StatusBadRequest)
	servertest.Send(t, c, http.MethodDelete, path, nil).Want(t, http.StatusMethodNotAllowed)
	servertest.Send(t, c, http.MethodPost, path+"/", `{"source":"1"}`).Want(t, http.StatusNotFound)
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""} {
		r := request(t, s, http.MethodPost, path, `{"source":"1"}`)
		if r.Header.Del("Content-Type"); kind != "" {
			r.Header.Set("Content-Type", kind)
		}
		servertest.Do(t, c, r).Want(t, http.StatusUnsupportedMediaType)
	}
}

// Large and deep bodies are refused before they are parsed, with small problems.
func testHostileBodies(t *testing.T, s *servertest.Server) {
	c := s.Client(t, snippetUser)
	for name, r := range map[string]struct {
		body   string
		status int
	}{
		"large":      {`{"source":"` + strings.Repeat("a", 2<<20) + `"}`, 413},
		"blank":      {strings.Repeat(" ", 2<<20) + `{"source":"1"}`, 413},
		"deep":       {`{"files":` + strings.Repeat("[", 500_000), 400},
		"deep field": {`{"source":"1","x":` + strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000) + "}", 400},
		"many files": {`{"files":[` + strings.Repeat("{},", 100_000) + "{}]}", 400},
		"many keys":  {`{` + strings.Repeat(`"a":1,`, 100_000) + `"source":"1"}`, 400},
	} {
		res := servertest.Send(t, c, http.MethodPost, path, r.body)
		if res.Want(t, r.status); len(res.Body) > 20<<10 || t.Failed() {
			t.Fatalf("%s: a problem of %d bytes", name, len(res.Body))
		}
	}
	body := &endless{}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://gaol"+path, body) // in chunks
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if res, err := c.Do(r); err == nil { // the server may close the connection before the response is read
		if _ = res.Body.Close(); res.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("status %d", res.StatusCode)
		}
	}
	if body.sent > 16<<20 {
		t.Errorf("the server has read %d bytes", body.sent)
	}
}

// endless is a body of a string that does not end, up to 64 MiB.
type endless struct{ sent int }

func (e *endless) Read(p []byte) (int, error) {
	if e.sent > 64<<20 {
		return 0, http.ErrBodyReadAfterClose
	}
	for i := range p {
		p[i] = 'a'
	}
	if e.sent == 0 {
		copy(p, `{"source":"`)
	}
	e.sent += len(p)
	return len(p), nil
}
