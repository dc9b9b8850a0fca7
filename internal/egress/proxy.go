package egress

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"

	"golang.org/x/net/http/httpproxy"
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

// proxyRoute leads through an HTTP proxy. Unless ProxyNames is set, the proxy gets an
// address that has passed the rules, and not the name, which it could resolve to another.
func (s *Server) proxyRoute(ctx context.Context, proxy *url.URL, client *Client, t target) (route, error) {
	if proxy.Scheme != "http" {
		return route{}, fmt.Errorf("egress: proxy %s: only http:// is supported", proxy.Redacted())
	}
	to := net.JoinHostPort(t.host(), fmt.Sprint(t.port))
	if t.name == "" || !s.config.ProxyNames {
		a, err := s.resolveOne(ctx, client, t)
		if err != nil {
			return route{}, err
		}
		to = a.String()
	}
	port, err := strconv.ParseUint(cmp.Or(proxy.Port(), "80"), 10, 16)
	if err != nil {
		return route{}, fmt.Errorf("egress: proxy %s: %w", proxy.Redacted(), err)
	}
	release, err := client.pending.acquire(ctx)
	if err != nil {
		return route{}, err
	}
	defer release()
	list, err := s.config.Resolver.LookupNetIP(ctx, "ip", proxy.Hostname())
	r := route{
		check: func(netip.AddrPort) error { return nil },
		tunnel: func(f *os.File) error {
			if err := requestTunnel(f, proxy, to); err != nil {
				return fmt.Errorf("egress: proxy %s: %w", proxy.Redacted(), err)
			}
			return nil
		},
	}
	for _, a := range list {
		r.to = append(r.to, netip.AddrPortFrom(a.Unmap(), uint16(port)))
	}
	return r, err
}

// maxResponse bounds the response of a proxy, in bytes.
const maxResponse = 64 << 10

func requestTunnel(c io.ReadWriter, proxy *url.URL, to string) error {
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: to}, Host: to, Header: http.Header{}}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := req.Write(c); err != nil {
		return err
	}
	// The server may speak first, so that nothing may be read beyond the response.
	resp, err := http.ReadResponse(bufio.NewReader(&oneByteReader{io.LimitReader(c, maxResponse)}), req)
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
func (s *Server) resolveOne(ctx context.Context, client *Client, t target) (netip.AddrPort, error) {
	list, err := s.lookUp(ctx, client, t)
	if err != nil {
		return netip.AddrPort{}, err
	}
	err = errNoAddress
	for _, a := range list {
		if err = checkAddress(client.rules, a); err == nil {
			return a, nil
		}
	}
	return netip.AddrPort{}, err
}
