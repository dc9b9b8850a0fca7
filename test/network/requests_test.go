package network

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"gaol/runtime"
)

// A request is a guest's data to api.example.com, for which the rules allow ports 80 and
// 443. The result is the status codes of the responses, "handshake" or "alert" for TLS, an
// errno, or "closed".
type request struct {
	name, port, text, want string
}

const apiHost = "\r\nHost: api.example.com\r\n\r\n"

const evilHost = "\r\nHost: evil.test\r\n\r\n"

var requests = []request{
	{"plain", "80", "GET / HTTP/1.1" + apiHost, "200"},
	{"with the port", "80", "GET / HTTP/1.1\r\nHost: api.example.com:80\r\n\r\n", "200"},
	{"mixed case", "80", "GET / HTTP/1.1\r\nhOST: Api.EXAMPLE.com\r\n\r\n", "200"},
	{"dot", "80", "GET / HTTP/1.1\r\nHost: api.example.com.\r\n\r\n", "200"},
	{"HTTP/1.0 without a host", "80", "GET / HTTP/1.0\r\n\r\n", "200"},
	{"absolute form", "80", "GET http://api.example.com/ HTTP/1.1" + apiHost, "200"},
	{"absolute form in upper case", "80", "GET HTTP://API.EXAMPLE.COM:80/ HTTP/1.1" + apiHost, "200"},
	{"absolute form with a user", "80", "GET http://user@api.example.com/ HTTP/1.1" + apiHost, "200"},
	{"empty lines before", "80", "\r\n\r\nGET / HTTP/1.1" + apiHost, "400"},
	{"newlines only", "80", "GET / HTTP/1.1\nHost: api.example.com\n\n", "200"},
	{"two requests", "80", "GET / HTTP/1.1" + apiHost + "GET / HTTP/1.1" + apiHost, "200,200"},
	{"upgrade to h2c", "80", "GET / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__" + apiHost, "200"},
	{"two slashes", "80", "GET //other.invalid/ HTTP/1.1" + apiHost, "200"},

	{"another host", "80", "GET / HTTP/1.1" + evilHost, "403"},
	{"another host in HTTP/1.0", "80", "GET / HTTP/1.0" + evilHost, "403"},
	{"another port", "80", "GET / HTTP/1.1\r\nHost: api.example.com:8080\r\nX: evil.test\r\n\r\n", "403"},
	{"address as host", "80", "GET / HTTP/1.1\r\nHost: 93.184.215.14\r\nX: evil.test\r\n\r\n", "403"},
	{"no host", "80", "GET / HTTP/1.1\r\nX: evil.test\r\n\r\n", "400"},
	{"a longer name", "80", "GET / HTTP/1.1\r\nHost: api.example.com.evil.test\r\n\r\n", "403"},
	{"a name in a name", "80", "GET / HTTP/1.1\r\nHost: evil.test.api.example.com\r\n\r\n", "403"},
	{"two hosts", "80", "GET / HTTP/1.1\r\nHost: api.example.com\r\nHost: evil.test\r\n\r\n", "400"},
	{"two hosts, the other one first", "80", "GET / HTTP/1.1\r\nHost: evil.test\r\nHost: api.example.com\r\n\r\n", "400"},
	{"a list of hosts", "80", "GET / HTTP/1.1\r\nHost: api.example.com, evil.test\r\n\r\n", "400"},
	{"hosts with a blank", "80", "GET / HTTP/1.1\r\nHost: api.example.com evil.test\r\n\r\n", "400"},
	{"user in the host", "80", "GET / HTTP/1.1\r\nHost: api.example.com@evil.test\r\n\r\n", "400"},
	{"user in the host, reversed", "80", "GET / HTTP/1.1\r\nHost: evil.test@api.example.com\r\n\r\n", "400"},
	{"port in the host", "80", "GET / HTTP/1.1\r\nHost: api.example.com:80@evil.test\r\n\r\n", "400"},
	{"path in the host", "80", "GET / HTTP/1.1\r\nHost: evil.test/api.example.com\r\n\r\n", "400"},
	{"NUL in the host", "80", "GET / HTTP/1.1\r\nHost: api.example.com\x00evil.test\r\n\r\n", "400"},
	{"carriage return in the host", "80", "GET / HTTP/1.1\r\nHost: api.example.com\rHost: evil.test\r\n\r\n", "400"},
	{"tab before the host", "80", "GET / HTTP/1.1\r\nHost:\tevil.test\r\n\r\n", "403"},
	{"folded", "80", "GET / HTTP/1.1\r\nHost:\r\n evil.test\r\n\r\n", "403"},
	{"folded after another field", "80", "GET / HTTP/1.1\r\nX: y\r\n Host: evil.test" + evilHost, "403"},
	{"blank before the first field", "80", "GET / HTTP/1.1\r\n Host: evil.test" + apiHost, "400"},
	{"blank before the colon", "80", "GET / HTTP/1.1\r\nHost : evil.test" + apiHost, "400"},
	{"field without a colon", "80", "GET / HTTP/1.1\r\nHost evil.test" + apiHost, "400"},
	{"carriage returns only", "80", "GET / HTTP/1.1\rHost: evil.test\r\r", "400"},
	{"newlines only, another host", "80", "GET / HTTP/1.1\nHost: evil.test\n\n", "403"},
	{"blanks before", "80", " \t\r\nGET / HTTP/1.1" + evilHost, "400"},
	{"tabs", "80", "GET\t/\tHTTP/1.1" + evilHost, "400"},
	{"vertical tabs", "80", "GET\v/\vHTTP/1.1" + evilHost, "400"},
	{"two blanks", "80", "GET  /  HTTP/1.1" + evilHost, "400"},
	{"lower case", "80", "get / http/1.1" + evilHost, "400"},
	{"method in lower case", "80", "get / HTTP/1.1" + evilHost, "403"},
	{"long method", "80", strings.Repeat("M", 65) + " / HTTP/1.1" + evilHost, "403"},
	{"very long method", "80", strings.Repeat("M", 5000) + " / HTTP/1.1" + evilHost, "403"},
	{"long path", "80", "GET /" + strings.Repeat("a", 80<<10) + " HTTP/1.1" + evilHost, "431"},
	{"long headers", "80", "GET / HTTP/1.1\r\nX: " + strings.Repeat("a", 80<<10) + evilHost, "431"},
	{"control character in the path", "80", "GET /\x01 HTTP/1.1" + evilHost, "400"},
	{"delete in the path", "80", "GET /\x7f HTTP/1.1" + evilHost, "400"},
	{"control character after the version", "80", "GET / HTTP/1.1\x01" + evilHost, "400"},
	{"bytes in the path", "80", "GET /\xff\xfe HTTP/1.1" + evilHost, "403"},
	{"HTTP/0.9", "80", "GET /evil.test\r\n", "400"},
	{"HTTP/0.9, absolute", "80", "GET http://evil.test/\r\n", "400"},
	{"HTTP/0.9 with a version", "80", "GET / HTTP/0.9" + evilHost, "505"},
	{"HTTP/1.9", "80", "GET / HTTP/1.9" + evilHost, "403"},
	{"HTTP/2.0 as text", "80", "GET / HTTP/2.0" + evilHost, "505"},
	{"HTTP/3.0 as text", "80", "GET / HTTP/3.0" + evilHost, "505"},
	{"absolute form, another host", "80", "GET http://evil.test/ HTTP/1.1" + apiHost, "403"},
	{"absolute form, the host as user", "80", "GET http://api.example.com@evil.test/ HTTP/1.1" + apiHost, "403"},
	{"absolute form, backslash", "80", "GET http://api.example.com\\@evil.test/ HTTP/1.1" + apiHost, "400"},
	{"absolute form, https", "80", "GET https://api.example.com/evil.test HTTP/1.1" + apiHost, "403"},
	{"absolute form, ftp", "80", "GET ftp://evil.test/ HTTP/1.1" + apiHost, "403"},
	{"authority form", "80", "GET evil.test:80 HTTP/1.1" + apiHost, "403"},
	{"CONNECT", "80", "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", "403"},
	{"CONNECT to its own name", "80", "CONNECT api.example.com:80 HTTP/1.1\r\nHost: api.example.com:80\r\nX: evil.test\r\n\r\n", "403"},
	{"connect in lower case", "80", "connect evil.test:443 HTTP/1.1" + evilHost, "403"},
	{"WebSocket to another host", "80", "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket" + evilHost, "403"},
	{"HTTP/2 at once", "80", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + "\x00\x00\x0a\x01\x05\x00\x00\x00\x01\x82\x86\x84\x41\x05evil.test", "403"},
	{"HTTP/2 after blanks", "80", "\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\nevil.test", "400"},

	{"pipelined, another host", "80", "GET / HTTP/1.1" + apiHost + "GET / HTTP/1.1" + evilHost, "200,403"},
	{"after a body", "80", "POST / HTTP/1.1\r\nContent-Length: 4" + apiHost + "bodyGET / HTTP/1.1" + evilHost, "200,403"},
	{"after chunks", "80", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked" + apiHost + "4\r\nbody\r\n0\r\n\r\nGET / HTTP/1.1" + evilHost, "200,403"},
	{"both lengths", "80", "POST / HTTP/1.1\r\nContent-Length: 60\r\nTransfer-Encoding: chunked" + apiHost + "0\r\n\r\nGET / HTTP/1.1" + evilHost, "200,403"},
	{"a blank in the encoding", "80", "POST / HTTP/1.1\r\nTransfer-Encoding : chunked\r\nContent-Length: 5" + apiHost + "0\r\n\r\nGET / HTTP/1.1" + evilHost, "400"},
	{"unknown encoding", "80", "POST / HTTP/1.1\r\nTransfer-Encoding: xchunked" + apiHost + "0\r\n\r\nGET / HTTP/1.1" + evilHost, "501"},
	{"two encodings", "80", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity" + apiHost + "0\r\n\r\nGET / HTTP/1.1" + evilHost, "501"},
	{"two lengths", "80", "POST / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 60" + apiHost + "GET / HTTP/1.1" + evilHost, "400"},
	{"a list of lengths", "80", "POST / HTTP/1.1\r\nContent-Length: 0, 60" + apiHost + "GET / HTTP/1.1" + evilHost, "400"},
	{"negative length", "80", "POST / HTTP/1.1\r\nContent-Length: -1" + apiHost + "GET / HTTP/1.1" + evilHost, "400"},
	{"length with a sign", "80", "POST / HTTP/1.1\r\nContent-Length: +0" + apiHost + "GET / HTTP/1.1" + evilHost, "400"},
	{"broken chunk", "80", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked" + apiHost + "ffffffffffffffffff\r\nGET / HTTP/1.1" + evilHost, "closed"},
	{"TLS", "80", hello("evil.test"), "refused"},

	{"TLS on its port", "443", hello("api.example.com"), "handshake"},
	{"mixed case", "443", hello("API.example.COM"), "handshake"},
	{"fragments", "443", fragments(hello("api.example.com"), 7), "handshake"},
	{"another server name", "443", hello("evil.test"), "refused"},
	{"a longer server name", "443", hello("api.example.com.evil.test"), "refused"},
	{"a server name within the server name", "443", hello("evil.test.api.example.com"), "refused"},
	{"no server name", "443", hello(""), "refused"},
	{"fragments, another server name", "443", fragments(hello("evil.test"), 1), "refused"},
	{"blank before TLS", "443", "\n" + hello("evil.test"), "refused"},
	{"warning before TLS", "443", "\x15\x03\x01\x00\x02\x01\x00" + hello("evil.test"), "refused"},
	{"application data before TLS", "443", "\x17\x03\x01\x00\x01x" + hello("evil.test"), "refused"},
	{"no ClientHello", "443", "\x16\x03\x01\x00\x09\x02\x00\x00\x05evil.test", "refused"},
	{"ClientHello of SSL 2", "443", hello2(), "refused"},
	{"two server names", "443", twice(hello("api.example.com")), "refused"},
	{"HTTP on the port of TLS", "443", "GET / HTTP/1.1" + evilHost, "403"},
}

// hello returns a ClientHello.
func hello(serverName string) string {
	guest, host := net.Pipe()
	go func() {
		_ = tls.Client(guest, &tls.Config{ServerName: serverName, InsecureSkipVerify: true}).Handshake()
		guest.Close()
	}()
	head := make([]byte, 5)
	_, _ = io.ReadFull(host, head)
	body := make([]byte, binary.BigEndian.Uint16(head[3:]))
	_, _ = io.ReadFull(host, body)
	host.Close()
	return string(head) + string(body)
}

// fragments divides a record into several.
func fragments(record string, size int) string {
	var b bytes.Buffer
	for body := record[5:]; body != ""; {
		n := min(size, len(body))
		b.WriteString(record[:3])
		_ = binary.Write(&b, binary.BigEndian, uint16(n))
		b.WriteString(body[:n])
		body = body[n:]
	}
	return b.String()
}

// hello2 returns a ClientHello in the format of SSL 2, which OpenSSL still accepts for newer
// versions. It lacks a server name.
func hello2() string {
	ciphers := "\x00\x00\x2f\x00\x00\x35\x00\x00\x0a"
	return "\x80\x1e\x01\x03\x03\x00\x09\x00\x00\x00\x10" + ciphers + "evil.test-16byte"[:12] + "byte"
}

// twice changes a ClientHello's server name extension into one with two names.
func twice(hello string) string {
	const name = "api.example.com"
	at := strings.Index(hello, name)
	list := []byte(hello[at-5 : at]) // the length of the list, the type, the length of the name
	entry := hello[at-3 : at+len(name)]
	grown := len(entry)
	add := func(b []byte, n int) { binary.BigEndian.PutUint16(b, binary.BigEndian.Uint16(b)+uint16(n)) }
	add(list, grown)
	b := []byte(hello[:at-5] + string(list) + hello[at:at+len(name)] + strings.Replace(entry, name, "www.evil.test.x"[:len(name)], 1) + hello[at+len(name):])
	add(b[3:], grown)    // the record
	add(b[7:], grown)    // the handshake message
	add(b[at-7:], grown) // the extension
	sessionID := int(b[43])
	ciphers := int(binary.BigEndian.Uint16(b[44+sessionID:]))
	methods := int(b[46+sessionID+ciphers])
	add(b[47+sessionID+ciphers+methods:], grown) // all extensions
	return string(b)
}

const sending = `
import fs from 'node:fs';
import net from 'node:net';
const got = {};
for (const { name, port, text } of JSON.parse(fs.readFileSync(0))) {
	got[name + ' ' + port] = await new Promise(done => {
		let all = '';
		const s = net.connect(port, 'api.example.com', () => s.end(Buffer.from(text, 'base64')));
		s.on('data', part => { all += part.toString('latin1'); });
		s.on('error', err => { all ||= err.code; });
		s.on('close', () => {
			const codes = [...all.matchAll(/HTTP\/1\.[01] (\d+)/g)].map(m => m[1]).join();
			done(codes || { '': 'closed', '\x15': 'alert', '\x16': 'handshake' }[all[0] ?? ''] || all);
		});
	});
}
__return(got);`

// A guest's data must be about the name that it looked up. Nothing else arrives.
func TestRequests(t *testing.T) {
	in := serveInternet(t)
	want := map[string]string{}
	var list []map[string]string
	for _, r := range requests {
		want[r.name+" "+r.port] = r.want
		list = append(list, map[string]string{"name": r.name, "port": r.port, "text": base64.StdEncoding.EncodeToString([]byte(r.text))})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	eachLauncher(t, apiOnly, func(t *testing.T, rt *runtime.NodeRuntime) {
		in.forget()
		got, _ := attemptsWith(t, rt, sending, runtime.RunOptions{Stdin: bytes.NewReader(text)})
		check(t, got, want)
		in.checkSaid(t, "evil.test")
	})
}
