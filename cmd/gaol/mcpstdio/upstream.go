package mcpstdio

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// Upstream is a server that a [Proxy] connects to.
type Upstream struct {
	address string // as the user knows it
	url     string
	client  *http.Client
}

// NewUpstream returns the server at an address: the path of a unix socket, or an http or https URL. A
// token is needed for URLs only.
func NewUpstream(address, token string) (u Upstream, err error) {
	transport := &http.Transport{}
	u = Upstream{address: address, url: "http://gaol/mcp", client: &http.Client{Transport: transport, CheckRedirect: redirects}}
	if !strings.Contains(address, "://") {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", address)
		}
		return u, nil
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return u, fmt.Errorf("%q: want the path of a socket, or an http or https URL", address)
	}
	if token == "" {
		return u, fmt.Errorf("%s needs a token: set GAOL_TOKEN", address)
	}
	u.url = strings.TrimSuffix(parsed.String(), "/") + "/mcp"
	u.client.Transport = withToken{transport, token}
	return u, nil
}

// IsAbsent reports whether no server listens on a socket.
func IsAbsent(socket string) bool {
	c, err := net.Dial("unix", socket)
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// explain says what to do about a failed connection.
func (u Upstream) explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no server at %s: start one with gaol serve, or set GAOL_SOCKET to its socket", u.address)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission for %s: %s", u.address, membership(u.address))
	}
	return fmt.Errorf("server at %s: %w", u.address, err)
}

// membership says which group a user needs for a socket.
func membership(socket string) string {
	info, err := os.Stat(socket)
	if err != nil {
		return "its folder is closed to you"
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Gid == 0 {
		return "only root may connect; gaol serve --group names a group that may"
	}
	group := strconv.Itoa(int(stat.Gid))
	if g, err := user.LookupGroupId(group); err == nil {
		group = g.Name
	}
	return "join the group " + group + ", as with usermod -aG " + group + " USER, and log in again"
}
