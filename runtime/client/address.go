package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// DefaultSocket is where a server listens, unless its operator has chosen another path.
const DefaultSocket = "/run/gaol/gaol.sock"

// Socket returns the path of the socket that Options{} mean: $GAOL_SOCKET, or [DefaultSocket].
func Socket() string { return cmp.Or(os.Getenv("GAOL_SOCKET"), DefaultSocket) }

// HTTP is an HTTP client of one server. It sends the token, and follows no redirects.
type HTTP struct {
	*http.Client
	URL string // without a path

	socket string // empty: TCP
}

// NewHTTP returns an HTTP client of the server that o selects. It does not connect yet.
func NewHTTP(o Options) (*HTTP, error) {
	if o.Conn != nil && (o.Socket != "" || o.Address != "") {
		return nil, errors.New("gaol: dial: Conn excludes Socket and Address")
	}
	if o.Socket != "" && o.Address != "" {
		return nil, errors.New("gaol: dial: Socket and Address exclude each other")
	}
	transport := &http.Transport{TLSClientConfig: o.TLS}
	h := &HTTP{URL: "http://gaol", Client: &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if o.Address != "" {
		if !strings.HasPrefix(o.Address, "http://") && !strings.HasPrefix(o.Address, "https://") {
			return nil, fmt.Errorf("gaol: dial: address %q: want http:// or https:// and a host", o.Address)
		}
		h.URL = strings.TrimSuffix(o.Address, "/")
		if token := cmp.Or(o.Token, os.Getenv("GAOL_TOKEN")); token != "" {
			h.Transport = withToken{transport, token}
		}
		return h, nil
	}
	if o.Conn != nil {
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return o.Conn, nil }
		return h, nil
	}
	h.socket = cmp.Or(o.Socket, Socket())
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", h.socket)
	}
	return h, nil
}

// withToken sends a bearer token with each request.
type withToken struct {
	http.RoundTripper
	token string
}

// RoundTrip implements [http.RoundTripper].
func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.RoundTripper.RoundTrip(r)
}

// Explain returns why there is no connection, and what helps.
func (h *HTTP) Explain(err error) error {
	switch {
	case h.socket == "": // the URL of Conn is only a name
		return fmt.Errorf("gaol: dial %s: %w", h.URL, err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("gaol: no server listens on %s; root starts one with: gaol serve (%w)", h.socket, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("gaol: you may not use the server on %s: only root and members of %s may (%w)", h.socket, h.group(), err)
	}
	return fmt.Errorf("gaol: dial %s: %w", h.socket, err)
}

// group names the group that may use the socket.
func (h *HTTP) group() string {
	var info unix.Stat_t
	if unix.Stat(h.socket, &info) != nil {
		return "its group"
	}
	gid := strconv.FormatUint(uint64(info.Gid), 10)
	if g, err := user.LookupGroupId(gid); err == nil {
		return "the group " + g.Name
	}
	return "the group " + gid
}
