package egress

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"

	"golang.org/x/net/http/httpproxy"

	"gaol/policy"
)

// NewProxy returns a [Config] Proxy. Setting is the URL of an HTTP proxy; "" for the proxies of
// the variables HTTPS_PROXY and HTTP_PROXY of this process; or "none". Hosts in NO_PROXY are
// reached directly. All proxies get CONNECT requests.
func NewProxy(setting string) (func(host string, port uint16) (*url.URL, error), error) {
	c := httpproxy.FromEnvironment()
	switch setting {
	case "none":
		return nil, nil
	case "":
	default:
		u, err := url.Parse(setting)
		if err != nil || u.Scheme != "http" || u.Hostname() == "" {
			return nil, errors.New("want a URL of the form http://HOST:PORT, or none") // without the URL, which can have a password
		}
		c.HTTPProxy, c.HTTPSProxy = setting, setting
	}
	proxy := c.ProxyFunc()
	return func(host string, port uint16) (*url.URL, error) {
		u := &url.URL{Scheme: "https", Host: net.JoinHostPort(host, fmt.Sprint(port))}
		if port == 80 {
			u.Scheme = "http"
		}
		return proxy(u)
	}, nil
}

// dialProxy connects through an HTTP proxy. Unless ProxyNames is set, the proxy gets an
// address that has passed the rules, and not the name, which it could resolve to another.
func (s *Server) dialProxy(ctx context.Context, proxy *url.URL, client *Client, t target) (net.Conn, error) {
	to := net.JoinHostPort(t.host(), fmt.Sprint(t.port))
	if t.name == "" || !s.config.ProxyNames {
		a, err := s.resolveOne(ctx, client.rules, t)
		if err != nil {
			return nil, err
		}
		to = netip.AddrPortFrom(a, t.port).String()
	}
	if proxy.Scheme != "http" {
		return nil, fmt.Errorf("egress: proxy %s: only http:// is supported", proxy.Redacted())
	}
	address := proxy.Host
	if proxy.Port() == "" {
		address = net.JoinHostPort(proxy.Hostname(), "80")
	}
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error { return limitBuffers(raw, client.buffer()) }}
	d.SetMultipathTCP(false)
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if err := requestTunnel(c, proxy, to); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("egress: proxy %s: %w", proxy.Redacted(), errors.Join(err, context.Cause(ctx)))
	}
	return c, nil
}

func requestTunnel(c net.Conn, proxy *url.URL, to string) error {
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: to}, Host: to, Header: http.Header{}}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := req.Write(c); err != nil {
		return err
	}
	// The server may speak first, so that nothing may be read beyond the response.
	resp, err := http.ReadResponse(bufio.NewReader(&oneByteReader{io.LimitReader(c, maxHead)}), req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("CONNECT %s: %s", to, resp.Status)
	}
	return nil
}

// oneByteReader reads a byte at a time, and so never more than its caller needs.
type oneByteReader struct{ io.Reader }

func (r *oneByteReader) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }

// resolveOne returns the first address of a target that the rules allow.
func (s *Server) resolveOne(ctx context.Context, rules *policy.Egress, t target) (netip.Addr, error) {
	if t.name == "" {
		return t.addr, checkAddress(rules, netip.AddrPortFrom(t.addr, t.port))
	}
	list, err := s.config.Resolver.LookupNetIP(ctx, "ip", t.absolute())
	if err != nil {
		return netip.Addr{}, err
	}
	err = errors.New("no address")
	for _, a := range list {
		if err = checkAddress(rules, netip.AddrPortFrom(a.Unmap(), t.port)); err == nil {
			return a.Unmap(), nil
		}
	}
	return netip.Addr{}, err
}
