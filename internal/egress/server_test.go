package egress

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"gaol/test/internettest"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

const byName = `{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:443","tcp://api.example.com:80","tcp://api.example.com:5432","tcp://private.test:80","tcp://mixed.test:80"]}]}`

func TestLookUps(t *testing.T) {
	w := newWorld(t, byName, Limits{})
	for _, tc := range []struct {
		name  string
		qtype uint16
		rcode int
		want  int // records
	}{
		{"api.example.com", dns.TypeA, dns.RcodeSuccess, 1},
		{"API.example.COM", dns.TypeAAAA, dns.RcodeSuccess, 1},
		{"api.example.com", dns.TypeHTTPS, dns.RcodeSuccess, 0},
		{"api.example.com", dns.TypeTXT, dns.RcodeSuccess, 1},
		{"other.test", dns.TypeA, dns.RcodeRefused, 0},
		{"data.other.test", dns.TypeTXT, dns.RcodeRefused, 0},
		{"localhost", dns.TypeA, dns.RcodeSuccess, 1},
		{"a.localhost", dns.TypeAAAA, dns.RcodeSuccess, 1},
		{"private.test", dns.TypeAAAA, dns.RcodeSuccess, 0},
		{"14.215.184.93.in-addr.arpa", dns.TypePTR, dns.RcodeNameError, 0},
	} {
		reply := w.ask(tc.name, tc.qtype)
		if reply.Rcode != tc.rcode || len(reply.Answer) != tc.want {
			t.Errorf("%s %s: %v", tc.name, dns.TypeToString[tc.qtype], reply)
		}
	}
	if n := w.names.Asked("other.test") + w.names.Asked("data.other.test"); n != 0 {
		t.Errorf("%d questions about denied names left the sandbox", n)
	}
	if e := w.waitEvent(func(e Event) bool { return e.Host == "other.test" }); e.Operation != "dns" || e.Outcome != Denied || e.Rule != -1 {
		t.Errorf("event %+v", e)
	}
	if a := w.address("api.example.com"); !syntheticV4.Contains(netip.MustParseAddr(a)) || a != w.address("api.example.com") {
		t.Errorf("address %s", a)
	}
}

// The guest's own name is known without a question to a resolver, and without rules.
func TestOwnNames(t *testing.T) {
	w := newWorldWith(t, Config{Hostname: "Sandbox"}, `"deny"`, Limits{LookupsPerSec: 1})
	if a := w.address("sandbox"); a != "127.0.0.1" {
		t.Errorf("own name: %s", a)
	}
	if n := w.names.Asked("sandbox"); n != 0 || w.client.Usage().Lookups != 0 {
		t.Errorf("%d questions left the sandbox, usage %+v", n, w.client.Usage())
	}
}

// A rule that denies a name does not deny its server, which other names can lead to. One that denies
// the address does.
func TestOtherNameOfDeniedServer(t *testing.T) {
	for _, address := range []string{"", `,{"mode":"deny","patterns":["tcp://` + publicV4.String() + `:*"]}`} {
		t.Run(address, func(t *testing.T) {
			w := newWorld(t, `{"rules":[{"mode":"allow","patterns":["tcp://*:81"]},{"mode":"deny","patterns":["tcp://api.example.com:*"]}`+address+`]}`, Limits{}, 81)
			w.listen(publicV4, 81, echo("hi"))
			if reply := w.ask("api.example.com", dns.TypeA); reply.Rcode != dns.RcodeRefused {
				t.Errorf("the denied name: %v", reply)
			}
			if got, err := w.tryExchange("v4.example.com", 81, ""); (got == "hi") != (address == "") {
				t.Errorf("by another name, with the rules%s: %q, %v", address, got, err)
			}
		})
	}
}

func TestNameThatDoesNotExist(t *testing.T) {
	w := newWorld(t, `"allow"`, Limits{})
	if reply := w.ask("missing.test", dns.TypeA); reply.Rcode != dns.RcodeNameError {
		t.Error(reply)
	}
}

// Protocols of which the server speaks first, and others that are neither TLS nor HTTP,
// pass by name and port.
func TestOpaqueProtocol(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 5432)
	w.listen(publicV4, 5432, echo("SSH-2.0-x\r\n"))
	got, err := exchange(w.dial("api.example.com", 5432), "\x00\x00\x00\x08\x04\xd2\x16\x2f")
	if err != nil || got != "SSH-2.0-x\r\n\x00\x00\x00\x08\x04\xd2\x16\x2f" {
		t.Errorf("got %q, %v", got, err)
	}
	e := w.waitEvent(func(e Event) bool { return e.Outcome == Closed })
	if e.Host != "api.example.com" || e.Address != netip.AddrPortFrom(publicV4, 5432) || e.BytesIn != 19 || e.BytesOut != 8 || e.Rule != 0 {
		t.Errorf("event %+v", e)
	}
	if u := w.client.Usage(); u.BytesIn != 19 || u.BytesOut != 8 || u.Connections != 1 {
		t.Errorf("usage %+v", u)
	}
}

// Each is reset, and reported with the reason.
func TestDeniedConnections(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 80, 443)
	for _, a := range []netip.Addr{publicV4, otherV4, private, metadata} {
		w.listen(a, 80, echo("reached"))
	}
	for _, tc := range []struct{ host, why string }{
		{"93.184.215.14", ""},   // an address that was not looked up
		{"198.18.77.77", ""},    // a synthetic address without a name
		{"2001:2::77", ""},      //
		{"169.254.169.254", ""}, //
		{"private.test", ""},    // a name that the rules allow, with an address that they don't
	} {
		if got, err := w.tryExchange(tc.host, 80, "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n"); !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ENOTCONN) {
			t.Errorf("%s: got %q, %v", tc.host, got, err)
		}
	}
	for deadline := time.Now().Add(time.Minute); w.client.Usage().Denied != 5; time.Sleep(time.Millisecond) { // counted after the reset
		if time.Now().After(deadline) {
			t.Fatalf("%d denials", w.client.Usage().Denied)
		}
	}
}

// Of several addresses the allowed ones are used.
func TestNameWithPrivateAndPublicAddress(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 80)
	w.listen(private, 80, echo("private"))
	w.listen(publicV4, 80, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil { // closing with unread data would reset the connection
			_, _ = io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\npublic")
		}
	})
	got, err := exchange(w.dial("mixed.test", 80), "GET / HTTP/1.0\r\n\r\n")
	if err != nil || !strings.HasSuffix(got, "public") {
		t.Errorf("got %q, %v", got, err)
	}
}

// A name that resolves to something else when it is dialed is checked again.
func TestRebinding(t *testing.T) {
	w := newWorld(t, `"allow"`, Limits{}, 80)
	w.names.Set("rebind.test", publicV4)
	w.listen(metadata, 80, echo("secret"))
	address := w.address("rebind.test")
	w.names.Set("rebind.test", metadata)
	if got, err := w.tryExchange(address, 80, "x"); err == nil {
		t.Errorf("got %q", got)
	}
	if e := w.waitEvent(func(e Event) bool { return e.Outcome == Denied }); e.Address.Addr() != metadata {
		t.Errorf("event %+v", e)
	}
}

func TestServerNameOfTLS(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 443)
	cert := internettest.Certificate(t, "api.example.com", "evil.test")
	w.listen(publicV4, 443, func(c net.Conn) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		if s.Handshake() == nil {
			_, _ = io.WriteString(s, "hello "+s.ConnectionState().ServerName)
		}
		s.Close()
	})
	for _, tc := range []struct {
		sni string
		ok  bool
	}{{"api.example.com", true}, {"API.Example.com", true}, {"evil.test", false}, {"", false}, {"api.example.com.evil.test", false}} {
		c := tls.Client(w.dial("api.example.com", 443), &tls.Config{ServerName: tc.sni, InsecureSkipVerify: true})
		b, err := io.ReadAll(c)
		if ok := err == nil && strings.HasPrefix(string(b), "hello"); ok != tc.ok {
			t.Errorf("%q: got %q, %v", tc.sni, b, err)
		}
	}
	for _, text := range []string{"\x80\x2e\x01\x03\x03\x00\x15\x00\x00\x00\x10", "\x15\x03\x01\x00\x02\x02\x50"} { // without a server name
		if got, err := exchange(w.dial("api.example.com", 443), text); err == nil {
			t.Errorf("%q: got %q", text, got)
		}
	}
	if e := w.waitEvent(func(e Event) bool { return e.Why == `server name "evil.test"` }); e.Outcome != Denied {
		t.Errorf("event %+v", e)
	}
}

// requests are requests that a guest may send to the port for HTTP of api.example.com.
var requests = []struct {
	name, text string
	ok         bool
}{
	{"plain", "GET / HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n", true},
	{"port", "GET / HTTP/1.1\r\nHost: api.example.com:80\r\nConnection: close\r\n\r\n", true},
	{"mixed case", "GET / HTTP/1.1\r\nhOsT: API.Example.com\r\nConnection: close\r\n\r\n", true},
	{"dot", "GET / HTTP/1.1\r\nHost: api.example.com.\r\nConnection: close\r\n\r\n", true},
	{"1.0", "GET / HTTP/1.0\r\n\r\n", true},
	{"absolute", "GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n", true},
	{"other host", "GET / HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n", false},
	{"other port", "GET / HTTP/1.1\r\nHost: api.example.com:8080\r\nConnection: close\r\n\r\n", false},
	{"two hosts", "GET / HTTP/1.1\r\nHost: api.example.com\r\nHost: evil.test\r\nConnection: close\r\n\r\n", false},
	{"absolute to another", "GET http://evil.test/ HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n", false},
	{"absolute https", "GET https://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n", false},
	{"CONNECT", "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", false},
	{"CONNECT to itself", "CONNECT api.example.com:80 HTTP/1.1\r\nHost: api.example.com:80\r\n\r\n", false},
	{"h2c", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false},
	{"leading lines", "\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", false},
	{"leading blanks", " \tGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", false},
	{"tabs", "GET\t/\tHTTP/1.1\r\nHost: evil.test\r\n\r\n", false},
	{"bare newlines", "GET / HTTP/1.1\nHost: evil.test\n\n", false},
	{"0.9", "GET /\r\n", false},
	{"0.9 absolute", "GET http://evil.test/\r\n", false},
	{"lower case", "get / http/1.1\r\nHost: evil.test\r\n\r\n", false},
	{"long method", strings.Repeat("M", 65) + " / HTTP/1.1\r\nHost: evil.test\r\n\r\n", false},
	{"control character", "GET /\x01 HTTP/1.1\r\nHost: evil.test\r\n\r\n", false},
	{"control character after the version", "GET / HTTP/1.1\x01\r\nHost: evil.test\r\n\r\n", false},
	{"obsolete folding", "GET / HTTP/1.1\r\nHost:\r\n evil.test\r\n\r\n", false},
	{"blank in name", "GET / HTTP/1.1\r\nHost : evil.test\r\nHost: api.example.com\r\n\r\n", false},
	{"user", "GET http://api.example.com@evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", false},
	{"both lengths", "POST / HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", true},
}

func TestHostOfHTTP(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 80)
	w.listen(publicV4, 80, func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			body := "served " + req.Host
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
	})
	for _, tc := range requests {
		got, err := exchange(w.dial("api.example.com", 80), tc.text)
		served := strings.Contains(got, "served")
		if served != tc.ok || strings.Contains(got, "served evil") {
			t.Errorf("%s: got %q, %v", tc.name, got, err)
		}
	}
	// Requests on one connection, of which the last one has another host.
	const good = "GET /1 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
	got, _ := exchange(w.dial("api.example.com", 80), good+good+strings.Replace(good, "api.example.com", "evil.test", 1))
	if strings.Count(got, "served api.example.com") != 2 || !strings.Contains(got, "403") || strings.Contains(got, "served evil") {
		t.Errorf("pipelined: got %q", got)
	}
}

// With rules that do not distinguish names nothing is read from the connection.
func TestWideRules(t *testing.T) {
	w := newWorld(t, `"allow"`, Limits{}, 80)
	w.listen(publicV4, 80, echo(""))
	for _, host := range []string{"api.example.com", "93.184.215.14"} {
		if got, err := exchange(w.dial(host, 80), "GET / HTTP/1.1\r\nHost: any\r\n\r\n"); err != nil || !strings.Contains(got, "any") {
			t.Errorf("%s: got %q, %v", host, got, err)
		}
	}
}

func TestUpgrade(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 80)
	w.listen(publicV4, 80, func(c net.Conn) {
		r := bufio.NewReader(c)
		req, err := http.ReadRequest(r)
		if err != nil || req.Header.Get("Upgrade") != "websocket" {
			t.Errorf("request %v, %v", req, err)
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		_, _ = io.Copy(c, r)
	})
	c := w.dial("api.example.com", 80)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: api.example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatal(resp, err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.WriteString(c, "\x81\x05hello")
	b := make([]byte, 7)
	if _, err := io.ReadFull(r, b); err != nil || string(b) != "\x81\x05hello" {
		t.Errorf("got %q, %v", b, err)
	}
}

// An upgrade to HTTP or TLS, in which another host could be named, is not offered to the server.
func TestUpgradeToHTTP(t *testing.T) {
	w := newWorld(t, byName, Limits{}, 80)
	w.listen(publicV4, 80, func(c net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprintf(c, "HTTP/1.0 200 OK\r\n\r\n%q %q", req.Header["Upgrade"], req.Header["Connection"])
	})
	for _, offer := range []string{"h2c", "H2C", "websocket, h2c", "h2c-14", "TLS/1.2", "TLS/1.0, HTTP/1.1"} {
		got, err := exchange(w.dial("api.example.com", 80), "GET / HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\nUpgrade: "+offer+"\r\n\r\n")
		if err != nil || !strings.Contains(got, "[] []") {
			t.Errorf("%s: %q, %v", offer, got, err)
		}
	}
}

func TestRefusedByServer(t *testing.T) {
	w := newWorld(t, `"allow"`, Limits{}, 81)
	if _, err := w.tryExchange("v4.example.com", 81, "x"); err == nil {
		t.Error("connected")
	}
	if e := w.waitEvent(func(e Event) bool { return true }); e.Outcome != Refused || e.Host != "v4.example.com" {
		t.Errorf("event %+v", e)
	}
}

func TestLimits(t *testing.T) {
	w := newWorld(t, `"allow"`, Limits{Connections: 2, LookupsPerSec: 3}, 80)
	w.listen(publicV4, 80, echo("hi"))
	open := func() error {
		c, err := w.tryDial("93.184.215.14", 80)
		if err == nil {
			w.Cleanup(func() { c.Close() })
			_, err = io.ReadFull(c, make([]byte, 2))
		}
		return err
	}
	if err := errors.Join(open(), open()); err != nil {
		t.Error(err)
	}
	if err := open(); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("third connection: %v", err)
	}
	if e := w.waitEvent(func(e Event) bool { return e.Limit != "" }); e.Limit != "connections" {
		t.Errorf("event %+v", e)
	}
	refused := 0
	for range 20 {
		if w.ask("api.example.com", dns.TypeA).Rcode == dns.RcodeRefused {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no question was over the limit")
	}
}
