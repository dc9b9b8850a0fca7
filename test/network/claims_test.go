package network

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/internettest"
)

// A guest's first bytes to a server must agree with the name that it looked up.
func TestOtherNamesOnOneServer(t *testing.T) {
	serveInternet(t)
	const code = `
import http from 'node:http';
import http2 from 'node:http2';
import tls from 'node:tls';
const got = {};
const over = (name, servername) => new Promise(done => {
	const s = tls.connect({ host: 'api.example.com', port: 443, servername, rejectUnauthorized: false }, () => { done(got[name] = 'connected'); s.destroy(); });
	s.on('error', err => done(got[name] = err.code));
});
await over('tls: its name', 'api.example.com');
await over('tls: another name', 'other.test');
await over('tls: no name', '');
const request = (name, headers) => new Promise(done => {
	http.get({ host: 'api.example.com', headers, agent: false }, async res => {
		let text = '';
		for await (const part of res) text += part;
		done(got[name] = res.statusCode + ' ' + text);
	}).on('error', err => done(got[name] = err.code));
});
await request('http: its name', {});
await request('http: another name', { host: 'other.test' });
await new Promise(done => {
	const c = http2.connect('http://api.example.com');
	c.on('error', err => done(got.h2c = err.code));
	const r = c.request({ ':path': '/' });
	r.on('response', h => done(got.h2c = 'served'));
	r.on('error', () => {});
	r.on('close', () => done(got.h2c ??= 'closed'));
});
await new Promise(done => {
	const c = http2.connect('https://api.example.com', { rejectUnauthorized: false });
	const r = c.request({ ':path': '/' });
	r.on('response', h => { got.h2 = String(h[':status']); c.close(); done(); });
	r.on('error', err => done(got.h2 = err.code));
});
__return(got);`
	eachLauncher(t, apiOnly, func(t *testing.T, rt *runtime.NodeRuntime) {
		got, res := attempts(t, rt, code)
		for name, want := range map[string]string{"tls: its name": "connected", "tls: another name": "ECONNRESET", "tls: no name": "ECONNRESET", "http: its name": "200 served", "http: another name": "403", "h2": "200"} {
			if !strings.HasPrefix(got[name], want) {
				t.Errorf("%s: %s", name, got[name])
			}
		}
		if got["h2c"] == "served" {
			t.Error("HTTP/2 without TLS was served")
		}
		if !slices.ContainsFunc(res.Denials, func(d runtime.Denial) bool { return strings.Contains(d.Target, `server name "other.test"`) }) {
			t.Errorf("denials %+v", res.Denials)
		}
	})
}

// Protocols in which the server speaks first pass by name and port.
func TestServerThatSpeaksFirst(t *testing.T) {
	serveInternet(t)
	internettest.Listen(t, publicV4, 25, func(c net.Conn) {
		_, _ = io.WriteString(c, "220 ready\r\n")
		line, _ := bufio.NewReader(c).ReadString('\n')
		_, _ = io.WriteString(c, "250 "+line)
	})
	const code = `
import net from 'node:net';
const s = net.connect(25, 'www.example.com');
let text = '';
s.on('data', part => { if (!text) s.write('EHLO x\r\n'); text += part; });
s.on('close', () => __return({ text }));`
	eachLauncher(t, `{"rules":[{"mode":"allow","patterns":["tcp://www.example.com:25"]}]}`, func(t *testing.T, rt *runtime.NodeRuntime) {
		if got, _ := attempts(t, rt, code); got["text"] != "220 ready\r\n250 EHLO x\r\n" {
			t.Errorf("got %q", got)
		}
	})
}

// The rules hold for every program.
func TestStaticProgram(t *testing.T) {
	needBPF(t)
	serveInternet(t)
	internettest.Listen(t, publicV4, 7, sendLine("hello"))
	internettest.Listen(t, private, 7, sendLine("secret"))
	eachLauncher(t, `{"rules":[{"mode":"allow","patterns":["tcp://93.184.0.0/16:7"]}]}`, func(t *testing.T, rt *runtime.NodeRuntime) {
		program := harness.Install(t, rt, "connect")
		got := strings.Fields(strings.ReplaceAll(harness.Output(t, rt, runtime.RunOptions{}, program, "93.184.215.14", "7", "10.1.2.3", "7", "93.184.215.14", "80", "127.0.0.1", "7"), "got ", "got-"))
		if len(got) != 4 || got[0] != "got-hello" || got[1] != "EACCES" || got[2] != "EACCES" || got[3] != "EACCES" {
			t.Errorf("got %q", got)
		}
	})
}

// Events arrive one by one, and a WebSocket carries messages in both directions.
func TestStreams(t *testing.T) {
	serveInternet(t)
	next := make(chan struct{})
	serveHTTP(t, publicV4, 8080, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/next" {
			next <- struct{}{}
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, text := range []string{"one", "two"} {
			_, _ = io.WriteString(w, "data: "+text+"\n\n")
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	}), nil)
	const code = `
const got = { events: '' };
const res = await fetch('http://api.example.com:8080/events');
for await (const part of res.body) {
	got.events += Buffer.from(part);
	await fetch('http://api.example.com:8080/next');
}
__return(got);`
	eachLauncher(t, `{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:8080"]}]}`, func(t *testing.T, rt *runtime.NodeRuntime) {
		if got, _ := attempts(t, rt, code); got["events"] != "data: one\n\ndata: two\n\n" {
			t.Errorf("got %q", got)
		}
	})
}

// A guest that does not read what many servers send is not killed: the host's buffers are
// bounded, and not the guest's fault.
func TestUnreadConnections(t *testing.T) {
	serveInternet(t)
	part := make([]byte, 64<<10)
	internettest.Listen(t, publicV4, 19, func(c net.Conn) {
		for {
			if _, err := c.Write(part); err != nil {
				return
			}
		}
	})
	const code = `
import net from 'node:net';
const sockets = await Promise.all(Array.from({ length: 80 }, () => new Promise((done, fail) => {
	const s = net.connect(19, '93.184.215.14', () => { s.pause(); done(s); }).on('error', fail);
})));
await new Promise(done => setTimeout(done, 1000)); // the buffers fill
let n = 0;
await new Promise(done => sockets.forEach(s => { s.once('data', () => { s.destroy(); if (++n === sockets.length) done(); }); s.resume(); }));
__return({ n: String(n) });`
	eachLauncher(t, `"allow"`, func(t *testing.T, rt *runtime.NodeRuntime) {
		if got, _ := attempts(t, rt, code); got["n"] != "80" {
			t.Errorf("got %v", got)
		}
	})
}
