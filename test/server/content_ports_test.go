package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"gaol/test/server/servertest"
)

// httpServer is a guest's server that echoes requests, on port 3000.
const httpServer = `import http from 'node:http';
http.createServer((q, s) => {
	let body = ''; q.setEncoding('latin1').on('data', d => body += d).on('end', () =>
		s.writeHead(q.url === '/teapot' ? 418 : 200, { 'content-type': 'text/html', 'x-guest': 'yes' }).end(JSON.stringify({ method: q.method, url: q.url, headers: q.headers, body })));
}).listen(3000, '127.0.0.1');`

// rawServer is a guest's server on port 3000 that replies with the file "reply", whatever it gets.
const rawServer = `import fs from 'node:fs'; import net from 'node:net';
net.createServer(s => s.on('error', () => {}).once('data', () => s.end(fs.readFileSync('reply')))).listen(3000, '127.0.0.1');`

// echoed is what httpServer replies with.
type echoed struct {
	Method, URL, Body string
	Headers           map[string]string
}

func testContentListeners(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	res := servertest.Send(t, b.Client, "POST", b.path("listeners/3000/wait"), map[string]any{"timeoutMs": 20})
	res.Want(t, http.StatusOK)
	if got := string(res.Body); got != `{"listening":false}`+"\n" {
		t.Errorf("with no listener: %s", got)
	}
	b.start(t, 3000, httpServer)
	list := b.send(t, "GET", "listeners")
	list.Want(t, http.StatusOK)
	if got := string(list.Body); got != `{"listeners":[{"address":"127.0.0.1","port":3000}]}`+"\n" {
		t.Errorf("the listeners are %s", got)
	}
	b.send(t, "POST", "listeners/3000/wait").Want(t, http.StatusOK) // without a body
	for _, port := range []string{"0", "65536", "x", "-1"} {
		b.send(t, "POST", "listeners/"+port+"/wait").Want(t, http.StatusUnprocessableEntity)
	}
	servertest.Send(t, b.Client, "POST", b.path("listeners/3000/wait"), map[string]any{"timeoutMs": 3_600_001}).Want(t, http.StatusUnprocessableEntity)
	deaf := newBoxOf(t, b.server, b.Client, map[string]any{"permissions": map[string]any{"network": "deny"}})
	if p := deaf.send(t, "POST", "listeners/3000/wait").Want(t, http.StatusForbidden); p.Code != "forbidden" {
		t.Errorf("in a sandbox without a network: %+v", p)
	}
	if p := deaf.send(t, "GET", "ports/3000/").Want(t, http.StatusForbidden); p.Code != "forbidden" {
		t.Errorf("in a sandbox without a network: %+v", p)
	}
}

func testPortRequests(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, uploader, nil)
	b.start(t, 3000, httpServer)
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"} {
		r := b.request(t, method, strings.NewReader("\x00body\xff"), "ports/3000/a//b/c%2Fd;x", "q", "1")
		r.URL.RawQuery += "&z=;%zz"
		r.Header.Set("Content-Type", "text/plain")
		r.Header.Set("X-Own", "kept")
		for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization", "X-Forwarded-For", "Forwarded", "Referer", "Upgrade", "Keep-Alive", "X-Hop"} {
			r.Header.Set(name, "secret")
		}
		r.Header.Set("Connection", "x-hop, upgrade")
		res := servertest.Do(t, b.Client, r)
		var got echoed
		res.Into(t, &got)
		if res.Status != 200 || got.Method != method || got.URL != "/a//b/c%2Fd;x?q=1&z=;%zz" || got.Body != "\x00bodyÿ" || res.Header.Get("X-Guest") != "yes" {
			t.Errorf("%s: %d %s", method, res.Status, res.Body)
		}
		if got.Headers["host"] != "localhost:3000" || got.Headers["x-own"] != "kept" || strings.Contains(string(res.Body), "secret") {
			t.Errorf("%s: the guest's server got %v", method, got.Headers)
		}
		checkSandboxed(t, res.Header)
	}
	if res := b.send(t, "GET", "ports/3000"); res.Status != 200 || !strings.Contains(string(res.Body), `"url":"/"`) {
		t.Errorf("without a slash: %d %s", res.Status, res.Body)
	}
	if res := b.send(t, "GET", "ports/3000/teapot"); res.Status != 418 {
		t.Errorf("a status of the guest: %d %s", res.Status, res.Body)
	}
	for _, body := range []io.Reader{strings.NewReader(strings.Repeat("x", maxUpload+1)), io.LimitReader(zeroReader{}, maxUpload+1)} {
		res := servertest.Do(t, b.Client, b.request(t, "POST", body, "ports/3000/"))
		if p := res.Want(t, http.StatusRequestEntityTooLarge); p.Code != "too_large" {
			t.Errorf("a large body: %+v", p)
		}
	}
	for path, want := range map[string]int{"ports/0/": 422, "ports/65536/": 422, "ports/03000/": 422, "ports/x/": 422, "ports/": 422, "ports/3001/": 502, "ports/3000/a/../b": 400, "ports/3000/%2e%2E/x": 400, "ports/3000/../../../run": 400} {
		res := b.send(t, "GET", path)
		if p := res.Want(t, want); want == 502 && p.Code != "not_listening" {
			t.Errorf("%s: %+v", path, p)
		}
	}
	for _, method := range []string{"TRACE", "CONNECT"} {
		servertest.Do(t, b.Client, b.request(t, method, nil, "ports/3000/")).Want(t, http.StatusMethodNotAllowed)
	}
}

// checkSandboxed fails the test unless a page with the header is in a sandbox of the browser.
func checkSandboxed(t testing.TB, h http.Header) {
	t.Helper()
	if got := h.Values("Content-Security-Policy"); len(got) != 1 || !strings.HasPrefix(got[0], "sandbox;") {
		t.Errorf("Content-Security-Policy %q", got)
	}
	if got := h.Values("X-Content-Type-Options"); len(got) != 1 || got[0] != "nosniff" {
		t.Errorf("X-Content-Type-Options %q", got)
	}
}

// A hostile server's reply affects nothing beyond its sandbox.
func testHostileReplies(t *testing.T, s *servertest.Server) {
	const hostile = "Set-Cookie: a=evil\r\nSet-Cookie: b=evil; Domain=localhost\r\nContent-Security-Policy: default-src evil:\r\n" +
		"X-Content-Type-Options: evil\r\nService-Worker-Allowed: /evil\r\nClear-Site-Data: \"evil\"\r\nStrict-Transport-Security: max-age=1; evil\r\n" +
		"Alt-Svc: h2=\"evil:443\"\r\nWWW-Authenticate: Basic realm=evil\r\nRefresh: 0; url=evil\r\nLink: <evil>; rel=preload\r\nAccess-Control-Allow-Origin: http://evil\r\n" +
		"Access-Control-Allow-Credentials: evil\r\nReport-To: evil\r\nNEL: evil\r\nOrigin-Trial: evil\r\nCache-Control: max-age=1, evil\r\nAuthorization: evil\r\n" +
		"Proxy-Authenticate: Basic realm=evil\r\nSpeculation-Rules: \"evil\"\r\nSec-Session-Registration: evil\r\nKeep-Alive: evil\r\nTrailer: X-Evil\r\nContent-Location: evil\r\n"
	b := newBox(t, s, alice, nil)
	b.start(t, 3000, rawServer)
	for _, c := range []struct {
		name, reply string
		status      int
		code        string
	}{
		{"headers", "HTTP/1.1 200 OK\r\n" + hostile + "Content-Length: 2\r\n\r\nok", 200, ""},
		{"early hints", "HTTP/1.1 103 Early Hints\r\n" + hostile + "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, ""},
		{"trailer", "HTTP/1.1 200 OK\r\nTrailer: Set-Cookie\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n" + hostile + "\r\n", 200, ""},
		{"unknown trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n" + hostile + "\r\n", 200, ""},
		{"unauthorized", "HTTP/1.1 401 Unauthorized\r\n" + hostile + "Content-Length: 0\r\n\r\n", 401, ""},
		{"status 0", "HTTP/1.1 000 Zero\r\n" + hostile + "Content-Length: 0\r\n\r\n", 502, "bad_gateway"},
		{"status 999", "HTTP/1.1 999 Most\r\n" + hostile + "Content-Length: 0\r\n\r\n", 502, "bad_gateway"},
		{"upgrade", "HTTP/1.1 101 Switching Protocols\r\n" + hostile + "Connection: Upgrade\r\nUpgrade: evil\r\n\r\n", 502, "bad_gateway"},
		{"upgrade to nothing", "HTTP/1.1 101 Switching Protocols\r\n\r\n", 502, "bad_gateway"},
		{"endless header", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: "+strings.Repeat("x", 1000)+"\r\n", 100) + "\r\n", 502, "bad_gateway"},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!", 502, "bad_gateway"},
		{"no HTTP", "evil\r\n\r\n", 502, "bad_gateway"},
		{"nothing", "", 502, "bad_gateway"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.write(t, "/workspace/reply", c.reply)
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				t.Errorf("an informational response: %d %v", code, h)
				return nil
			}})
			res, err := b.Do(b.request(t, "GET", nil, "ports/3000/").WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != c.status || c.status == 200 && string(body) != "ok" || c.code != "" && !strings.Contains(string(body), `"code":"`+c.code+`"`) {
				t.Errorf("%s %s", res.Status, body)
			}
			for _, h := range []http.Header{res.Header, res.Trailer} {
				for name, values := range h {
					if strings.Contains(fmt.Sprint(name, values), "evil") || name == "Www-Authenticate" {
						t.Errorf("%s: %q", name, values)
					}
				}
			}
			checkSandboxed(t, res.Header)
		})
	}
}

// A redirect of a guest leads a client that has credentials nowhere but to the guest's server.
func testRedirects(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	b.start(t, 3000, rawServer)
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	base := "/v1/sandboxes/" + b.id + "/ports/3000"
	for _, c := range []struct{ location, want, foreign string }{
		{"/login?next=%2F#top", base + "/login?next=%2F", ""},
		{"next", base + "/dir/next", ""},
		{"../../../../../run", base + "/run", ""},
		{"/%2e%2e/%2E./../v1/run", base + "/v1/run", ""},
		{`/..\..\..\..\run`, base + "/run", ""},
		{"/a%2Fb/", base + "/a%2Fb/", ""},
		{"http://localhost:3000/x", base + "/x", ""},
		{"http://localhost:3001/x", "", "http://localhost:3001/x"},
		{"https://localhost:3000/x", "", "https://localhost:3000/x"},
		{"http://me@localhost:3000/x", "", "http://me@localhost:3000/x"},
		{"http://gaol/v1/run", "", "http://gaol/v1/run"},
		{"//gaol/v1/run", "", "//gaol/v1/run"},
		{"http:/v1/run", "", "http:/v1/run"},
		{"javascript:alert(1)", "", "javascript:alert(1)"},
		{"http://[bad", "", ""},
	} {
		b.write(t, "/workspace/reply", "HTTP/1.1 307 Temporary Redirect\r\nLocation: "+c.location+"\r\nGaol-Location: evil\r\nContent-Length: 0\r\n\r\n")
		res := b.send(t, "POST", "ports/3000/dir/page")
		if got, foreign := res.Header.Get("Location"), res.Header.Get("Gaol-Location"); res.Status != 307 || got != c.want || foreign != c.foreign {
			t.Errorf("%s: status %d, location %q, foreign %q; want %q, %q", c.location, res.Status, got, foreign, c.want, c.foreign)
		}
	}
}

// webSocketServer is a guest's WebSocket server on port 3000 that sends back each message of less
// than 126 bytes, without a library.
const webSocketServer = `import http from 'node:http'; import { createHash } from 'node:crypto';
http.createServer().on('upgrade', (q, s) => {
	const key = createHash('sha1').update(q.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
	s.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSet-Cookie: a=evil\r\nX-Cookie: ' + (q.headers.cookie ?? 'none') + '\r\nSec-WebSocket-Accept: ' + key + '\r\n\r\n');
	s.on('error', () => {}).on('data', d => {
		const text = d.subarray(6, 6 + (d[1] & 127)).map((x, i) => x ^ d[2 + i % 4]);
		s.write(Buffer.concat([Buffer.from([d[0], text.length]), text]));
	});
}).listen(3000, '127.0.0.1');`

func testWebSocket(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	b.start(t, 3000, webSocketServer)
	c, res, err := websocket.Dial(t.Context(), "ws://gaol"+b.path("ports/3000/socket"), &websocket.DialOptions{
		HTTPClient: b.Client, HTTPHeader: http.Header{"Cookie": {"secret"}, "Authorization": {"secret"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if res.Header.Get("X-Cookie") != "none" || res.Header.Get("Set-Cookie") != "" {
		t.Errorf("the header is %v", res.Header)
	}
	for _, text := range []string{"one", "two\x00\xff"} {
		if err := c.Write(t.Context(), websocket.MessageBinary, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := c.Read(t.Context()); err != nil || string(got) != text {
			t.Errorf("got %q, %v", got, err)
		}
	}
	b.close(t)
	if _, got, err := c.Read(t.Context()); err == nil {
		t.Errorf("the closed sandbox sent %q", got)
	}
	_, res, err = websocket.Dial(t.Context(), "ws://gaol"+b.path("ports/3000/socket"), &websocket.DialOptions{HTTPClient: b.Client})
	if err == nil || res.StatusCode != http.StatusNotFound {
		t.Errorf("after its end: %v", err)
	}
}

// Events arrive when the guest sends them.
func testEventStream(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	b.start(t, 3000, `import http from 'node:http';
		let first;
		http.createServer((q, s) => {
			if (q.url === '/next') { first.write('data: two\n\n'); return s.end(); }
			first = s; s.writeHead(200, { 'content-type': q.url === '/plain' ? 'text/plain' : 'text/event-stream' }); s.write('data: one\n\n');
		}).listen(3000, '127.0.0.1');`)
	for _, path := range []string{"/events", "/plain"} {
		res, err := b.Do(b.request(t, "GET", nil, "ports/3000"+path))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		for i, want := range []string{"data: one", "", "data: two"} {
			if !lines.Scan() || lines.Text() != want {
				t.Fatalf("%s: line %d is %q, want %q: %v", path, i, lines.Text(), want, lines.Err())
			}
			if want == "" {
				b.send(t, "GET", "ports/3000/next").Want(t, http.StatusOK)
			}
		}
	}
}

// A guest that never answers occupies one connection, until its client goes.
func testSilentServer(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, single, nil)
	b.start(t, 3000, `import net from 'node:net'; net.createServer(s => s.on('error', () => {}).on('close', () => console.log('closed')).resume()).listen(3000, '127.0.0.1');`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		for {
			res, err := b.Do(b.request(t, "GET", nil, "ports/3000/").WithContext(ctx))
			if err != nil {
				done <- err
				return
			}
			res.Body.Close() // the loop below was faster
		}
	}()
	refused := func() bool {
		res := b.send(t, "GET", "ports/3001/")
		if res.Status != http.StatusTooManyRequests {
			res.Want(t, http.StatusBadGateway)
			return false
		}
		if p := res.Want(t, http.StatusTooManyRequests); p.Code != "quota" || !strings.Contains(p.Detail, "connections") || res.Header.Get("Retry-After") == "" {
			t.Errorf("a second connection: %+v", p)
		}
		return true
	}
	for !refused() {
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	if err := <-done; ctx.Err() == nil || !strings.Contains(err.Error(), "canceled") {
		t.Error(err)
	}
	for refused() {
		time.Sleep(5 * time.Millisecond)
	}
}

// What web pages can send without asking first does not reach the API or a guest.
func testPagesOfOthers(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	b.start(t, 3000, httpServer)
	for _, c := range []struct {
		path, header, value string
		status              int
	}{
		{"ports/3000/", "Origin", "http://evil", 403},
		{"ports/3000/", "Origin", "null", 403}, // a page in a browser's sandbox
		{"ports/3000/", "Sec-Fetch-Site", "cross-site", 403},
		{"ports/3000/", "Sec-Fetch-Site", "same-site", 403},
		{"ports/3000/", "Origin", "http://gaol", 200},
		{"ports/3000/", "", "", 200},
		{"run", "", "", 415},
		{"ports", "", "", 415},
		{"x/ports/3000/", "", "", 415},
		{"ports%2F3000/", "", "", 415},
		{"%70orts/3000/", "", "", 415},
		{"files/move", "", "", 415},
	} {
		r := b.request(t, "POST", strings.NewReader(`{"code":"1"}`), "")
		text, _, _ := strings.Cut(r.URL.String(), "?")
		r, err := http.NewRequestWithContext(t.Context(), "POST", text+c.path, strings.NewReader(`{"code":"1"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "text/plain")
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		if res := servertest.Do(t, b.Client, r); res.Status != c.status {
			t.Errorf("%s %s %s: %d %s, want %d", c.path, c.header, c.value, res.Status, res.Body, c.status)
		}
	}
}
