package egress

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// connectProxy is an HTTP proxy that answers CONNECT requests itself, instead of the server.
type connectProxy struct {
	mu       sync.Mutex
	requests []*http.Request
}

// serveProxy starts a proxy and returns its URL, with a user and a password.
func serveProxy(t *testing.T) (*connectProxy, string) {
	t.Helper()
	p := &connectProxy{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return p, "http://user:secret@" + l.Addr().String()
}

func (p *connectProxy) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.requests = append(p.requests, req)
	p.mu.Unlock()
	if strings.HasPrefix(req.Host, otherV4.String()) {
		_, _ = io.WriteString(c, "HTTP/1.1 403 Forbidden\r\n\r\n")
		return
	}
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n220 through the proxy\r\n") // the server speaks first
	_, _ = io.Copy(io.Discard, r)
}

func (p *connectProxy) targets() (list []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		list = append(list, r.Method+" "+r.Host)
	}
	return list
}

func proxyConfig(t *testing.T, setting string) Config {
	t.Helper()
	proxy, err := NewProxy(setting)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Proxy: proxy}
}

// The proxy gets an address that has passed the rules.
func TestProxy(t *testing.T) {
	p, at := serveProxy(t)
	w := newWorldWith(t, proxyConfig(t, at), `{"rules":[{"mode":"allow","patterns":["tcp://v4.example.com:25","tcp://private.test:25","tcp://mixed.test:25","tcp://other.test:25","tcp://93.184.0.0/16:25"]}]}`, Limits{}, 25)
	for host, want := range map[string]string{"v4.example.com": "220 through the proxy\r\n", "mixed.test": "220 through the proxy\r\n", "93.184.215.14": "220 through the proxy\r\n", "private.test": "", "other.test": ""} {
		if got, err := w.tryExchange(host, 25, "QUIT\r\n"); got != want || want == "" && err == nil {
			t.Errorf("%s: got %q, %v", host, got, err)
		}
	}
	for _, target := range p.targets() {
		a, err := netip.ParseAddrPort(strings.TrimPrefix(target, "CONNECT "))
		if err != nil || a.Addr() != publicV4 && a.Addr() != otherV4 {
			t.Errorf("the proxy got %q", target)
		}
	}
	if n := len(p.targets()); n != 4 {
		t.Errorf("%d requests", n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if r.Header.Get("Proxy-Authorization") != "Basic dXNlcjpzZWNyZXQ=" {
			t.Errorf("header %v", r.Header)
		}
	}
}

// By an option the proxy gets names, of hosts that this process cannot look up, too.
func TestProxyNames(t *testing.T) {
	p, at := serveProxy(t)
	c := proxyConfig(t, at)
	c.ProxyNames = true
	w := newWorldWith(t, c, `{"rules":[{"mode":"allow","patterns":["tcp://intranet.test:25"]}]}`, Limits{}, 25)
	if got, err := w.tryExchange("intranet.test", 25, "QUIT\r\n"); err != nil || got == "" {
		t.Errorf("got %q, %v", got, err)
	}
	if list := p.targets(); len(list) != 1 || list[0] != "CONNECT intranet.test:25" {
		t.Errorf("the proxy got %q", list)
	}
}

func TestNoProxy(t *testing.T) {
	t.Setenv("NO_PROXY", "v4.example.com")
	p, at := serveProxy(t)
	w := newWorldWith(t, proxyConfig(t, at), `{"rules":[{"mode":"allow","patterns":["tcp://v4.example.com:25"]}]}`, Limits{}, 25)
	w.listen(publicV4, 25, echo("direct"))
	if got, err := w.tryExchange("v4.example.com", 25, "x"); err != nil || !strings.Contains(got, "direct") {
		t.Errorf("got %q, %v", got, err)
	}
	if list := p.targets(); len(list) != 0 {
		t.Errorf("the proxy got %q", list)
	}
}

func TestNewProxy(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://environment:1")
	t.Setenv("HTTP_PROXY", "http://plain:1")
	for setting, want := range map[string]string{"": "http://environment:1", "http://given:2": "http://given:2"} {
		proxy, err := NewProxy(setting)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := proxy("example.com", 443); err != nil || got.String() != want {
			t.Errorf("%q: %v, %v", setting, got, err)
		}
	}
	if proxy, err := NewProxy("none"); proxy != nil || err != nil {
		t.Errorf("none: %v", err)
	}
	for _, bad := range []string{"given:2", "https://given:2", "http://", "socks5://x:secret@y", "http://a b"} {
		if _, err := NewProxy(bad); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
