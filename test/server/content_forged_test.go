package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gaol/test/server/servertest"
)

// forgedError is what net/http sends to clients whose requests it cannot parse.
const forgedError = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"

// testForgedErrors: files, a guest's server and events pass the text of an error of net/http unchanged, on one
// connection, whose next response is the server's own.
func testForgedErrors(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	b.start(t, 3000, rawServer)
	c, err := servertest.Dial(s.Socket, alice)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Minute))
	r := bufio.NewReader(c)
	send := func(method, path, body string, header ...string) (status int, content []byte) {
		request := httptest.NewRequest(method, "http://gaol"+path, strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		if err := request.Write(c); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(r, request)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		return res.StatusCode, text
	}
	for _, n := range []int{0, 1, 511 - len(forgedError), 4096, 32847 - len(forgedError), 32768, 65536} {
		text := strings.Repeat("x", n) + forgedError
		b.write(t, "/workspace/file", text)
		if _, got := send("GET", b.path("files", "path", "/workspace/file"), ""); string(got) != text {
			t.Errorf("%d: a file of %d bytes arrived as %d", n, len(text), len(got))
		}
		b.write(t, "/workspace/reply", fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text))
		if status, got := send("GET", b.path("ports/3000/"), ""); status != 200 || string(got) != text {
			t.Errorf("%d: a guest's response of %d bytes arrived as %d", n, len(text), len(got))
		}
	}
	program, err := json.Marshal(map[string]any{"code": fmt.Sprintf("process.stdout.write(%q)", forgedError), "timeoutMs": 300_000})
	if err != nil {
		t.Fatal(err)
	}
	quoted, _ := json.Marshal(forgedError)
	if _, got := send("POST", b.path("run"), string(program), "Accept", "text/event-stream"); !bytes.Contains(got, quoted[1:len(quoted)-1]) {
		t.Errorf("events: %s", got)
	}
	if status, got := send("GET", "/v1/sandboxes", ""); status != 200 || !json.Valid(got) {
		t.Errorf("the next response of the connection is %d %s", status, got)
	}
}
