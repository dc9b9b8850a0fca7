package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	protocol "gaol/internal/session"
	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/test/server/servertest"
)

// forgedResponse is an error of net/http, which a client would take for the response to its next request.
const forgedResponse = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"

// forgeResponses makes a guest write responses to a file, a port and its output, on a connection on which
// the next request is another tenant's.
func forgeResponses(ctx context.Context, t *testing.T, w *world, begun func()) {
	text := strings.Repeat("x", 32847-len(forgedResponse)) + forgedResponse
	box, remove := w.tokenBox(t, map[string]any{"files": map[string]string{"/workspace/forged": text}})
	defer remove()
	quoted, err := json.Marshal(forgedResponse)
	if err != nil {
		t.Error(err)
		return
	}
	token := func(name string) []string { return []string{"Authorization", "Bearer " + servertest.Token(name)} }
	program, _ := json.Marshal(map[string]any{"timeoutMs": 300_000, "code": `import http from 'node:http'; import fs from 'node:fs';
http.createServer((q, s) => s.end(fs.readFileSync('/workspace/forged'))).listen(3000, '127.0.0.1')`})
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() {
		own := &http.Client{Transport: w.shared.Transport.(*http.Transport).Clone()} // the shared connection remains free
		defer own.CloseIdleConnections()
		status, reply, err := post(ctx, own, box+"/run", string(program), token("mallory")...)
		if ctx.Err() == nil {
			t.Errorf("the guest's server has ended: %d, %v, %s", status, err, reply)
		}
	})
	if status, reply, err := post(ctx, w.shared, box+"/listeners/3000/wait", "{}", token("mallory")...); err != nil || status != 200 {
		t.Errorf("wait for the guest's server: %d, %v, %s", status, err, reply)
		return
	}
	print, _ := json.Marshal(map[string]any{"code": fmt.Sprintf("process.stdout.write(%q)", forgedResponse)})
	for ctx.Err() == nil {
		for _, forged := range []struct{ method, path, body, want string }{
			{http.MethodGet, box + "/files?path=/workspace/forged", "", text},
			{http.MethodGet, box + "/ports/3000/", "", text},
			{http.MethodPost, box + "/run", string(print), string(quoted[1 : len(quoted)-1])},
		} {
			header := append(token("mallory"), "Content-Type", "application/json", "Accept", "text/event-stream")
			_, got, err := send(ctx, w.shared, forged.method, forged.path, forged.body, header...)
			if ctx.Err() == nil && (err != nil || !strings.Contains(string(got), forged.want)) {
				t.Errorf("%s: %v, %d bytes: %.500s", forged.path, err, len(got), got)
				return
			}
			status, reply, err := send(ctx, w.shared, http.MethodGet, "/v1/sandboxes", "", token("alice")...)
			if ctx.Err() == nil && (err != nil || status != 200 || strings.TrimSpace(string(reply)) != `{"sandboxes":[]}`) {
				t.Errorf("the neighbour's response after %s: %d, %v, %.500s", forged.path, status, err, reply)
				return
			}
			begun()
		}
	}
}

// tokenBox creates a sandbox of the attacker's token.
func (w *world) tokenBox(t *testing.T, fields map[string]any) (path string, remove func()) {
	t.Helper()
	owner := *w
	owner.attacker = &http.Client{Transport: withToken{w.shared.Transport, servertest.Token("mallory")}}
	return owner.box(t, fields)
}

// withToken adds a token to requests.
type withToken struct {
	http.RoundTripper
	token string
}

func (r withToken) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	q.Header.Set("Authorization", "Bearer "+r.token)
	return r.RoundTripper.RoundTrip(q)
}

// sendComplexCode sends code that takes a compiler years, to all operations that compile.
func sendComplexCode(ctx context.Context, t *testing.T, w *world, begun func()) {
	var workers sync.WaitGroup
	for _, q := range complexCode() {
		workers.Go(func() {
			repeat(ctx, 2, func() {
				begun()
				attack(ctx, t, w.attacker, q.path, q.body)
			})
		})
	}
	workers.Wait()
}

// sendManyValues sends bodies of 15 MiB that are 5 million values, and keeps evaluations with large globals, on sixteen
// connections at the same time.
func sendManyValues(ctx context.Context, t *testing.T, w *world, begun func()) {
	// The bodies are made once: what making them takes would be measured, too.
	values := `[` + strings.Repeat(`{},`, 5<<20) + `0]`
	run, call := `{"code":"1","args":`+values+`}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"code":`+values+`}}}`
	frame := protocol.Append(nil, protocol.KindRequest, 1, []byte(`{"method":"run","params":{"code":"1","args":`+values+`}}`))
	globals := `{"code":"await new Promise(r => setTimeout(r, 1e6))","timeoutMs":300000,"globals":{"a":[` + strings.Repeat(`{},`, 580_000) + `0]}}`
	refused := func(path, body string, header ...string) {
		status, reply, err := post(ctx, w.attacker, path, body, header...)
		if begun(); ctx.Err() == nil && (err != nil || status != http.StatusBadRequest && status != http.StatusTooManyRequests) {
			t.Errorf("%s: %d, %v, %.500s", path, status, err, reply)
		}
	}
	var workers sync.WaitGroup
	for _, send := range []func(){
		func() { refused("/v1/run", run) },
		func() { refused("/mcp", call, "Accept", "application/json, text/event-stream") },
		func() { w.sendSession(ctx, t, frame) },
		func() { _, _, _ = post(ctx, w.attacker, "/v1/evaluate", globals) },
	} {
		workers.Go(func() { repeat(ctx, 4, send) })
	}
	workers.Wait()
}

// sendSession sends a frame on a separate session, which must be refused.
func (w *world) sendSession(ctx context.Context, t *testing.T, frame []byte) {
	c, err := w.session(ctx)
	if err == nil {
		defer func() { _ = c.CloseNow() }()
		err = c.Write(ctx, websocket.MessageBinary, frame)
	}
	var message []byte
	if err == nil {
		_, message, err = c.Read(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	if f, parsed := protocol.Parse(protocol.Server, message); err != nil || parsed != nil || f.Kind != protocol.KindError {
		t.Errorf("a session: %v, %v, %.500s", err, parsed, message)
	}
}

// callSlowSchema calls a function whose schema of 14 KB takes two million steps for arguments of 4 KB.
func callSlowSchema(ctx context.Context, t *testing.T, w *world, begun func()) {
	conn, err := servertest.Dial(w.socket, mallory)
	if err != nil {
		t.Error(err)
		return
	}
	c, err := client.Dial(ctx, client.Options{Conn: conn})
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	slow := runtime.Function{
		Async: true, Strict: true, Schema: json.RawMessage(`{"prefixItems":[{"items":{"anyOf":[` + strings.Repeat(`{"minimum":9},`, 1000) + `{"type":"string"}]}}]}`),
		Call: func(context.Context, json.RawMessage) (any, error) { return nil, nil },
	}
	sb, err := c.Create(ctx, client.CreateOptions{Bindings: map[string]any{
		"slow":  slow,
		"begun": runtime.NewFunction0("", func(context.Context) (int, error) { begun(); return 0, nil }),
	}})
	if err != nil {
		t.Error(err)
		return
	}
	res, err := sb.Run(ctx, `
const args = Array(2000).fill(1);
for (;;) {
	const calls = Array.from({ length: 16 }, () => slow(args).then(() => 'accepted', e => e.code));
	begun();
	for (const code of await Promise.all(calls)) if (code !== 'ERR_ARGUMENTS') throw new Error(code);
}`, runtime.RunOptions{Timeout: 5 * hangTime})
	if ctx.Err() == nil {
		t.Errorf("the calls have ended: %v, %+v", err, res)
	}
}

// sendUnfinished sends nearly all of a message of 31 MiB on each of 24 sessions.
func sendUnfinished(ctx context.Context, t *testing.T, w *world, begun func()) {
	const sessions = 24
	part := protocol.Append(nil, protocol.KindRequest, 1, make([]byte, 31<<20))
	var sent atomic.Int64
	var workers sync.WaitGroup
	for range sessions {
		workers.Go(func() {
			c, err := w.session(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.CloseNow() }()
			message, err := c.Writer(ctx, websocket.MessageBinary)
			if err == nil {
				_, err = message.Write(part) // returns when the server has read nearly all of it
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			if sent.Add(1) == sessions {
				begun()
			}
			<-ctx.Done()
		})
	}
	workers.Wait()
}
