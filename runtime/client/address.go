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
)

// DefaultSocket is where a server listens, unless its operator has chosen another path.
const DefaultSocket = "/run/gaol/gaol.sock"

// Socket returns the path of the socket that Options{} mean: $GAOL_SOCKET, or [DefaultSocket].
func Socket() string { return cmp.Or(os.Getenv("GAOL_SOCKET"), DefaultSocket) }

// target is the server to connect to.
type target struct {
	url    string // of the session
	socket string // empty: TCP
	header http.Header
	client *http.Client
}

func newTarget(o Options) (*target, error) {
	t := &target{header: http.Header{}}
	if o.Conn != nil && (o.Socket != "" || o.Address != "") {
		return nil, errors.New("gaol: dial: Conn excludes Socket and Address")
	}
	if o.Socket != "" && o.Address != "" {
		return nil, errors.New("gaol: dial: Socket and Address exclude each other")
	}
	if token := cmp.Or(o.Token, os.Getenv("GAOL_TOKEN")); token != "" && o.Address != "" {
		t.header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: o.TLS}
	t.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if o.Address != "" {
		if !strings.HasPrefix(o.Address, "http://") && !strings.HasPrefix(o.Address, "https://") {
			return nil, fmt.Errorf("gaol: dial: address %q: want http:// or https:// and a host", o.Address)
		}
		t.url = strings.TrimSuffix(o.Address, "/") + "/v1/session"
		return t, nil
	}
	t.url = "http://gaol/v1/session"
	if o.Conn != nil {
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return o.Conn, nil }
		return t, nil
	}
	t.socket = cmp.Or(o.Socket, Socket())
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", t.socket)
	}
	return t, nil
}

// explain returns why there is no connection, and what helps.
func (t *target) explain(err error) error {
	switch {
	case t.socket == "": // the URL of Conn is only a name
		return fmt.Errorf("gaol: dial %s: %w", strings.TrimSuffix(t.url, "/v1/session"), err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("gaol: no server listens on %s; root starts one with: gaol serve (%w)", t.socket, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("gaol: you may not use the server on %s: only root and members of %s may (%w)", t.socket, t.group(), err)
	}
	return fmt.Errorf("gaol: dial %s: %w", t.socket, err)
}

// group names the group that may use the socket.
func (t *target) group() string {
	info, err := os.Stat(t.socket)
	if err != nil {
		return "its group"
	}
	status, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "its group"
	}
	gid := strconv.FormatUint(uint64(status.Gid), 10)
	if g, err := user.LookupGroupId(gid); err == nil {
		return "the group " + g.Name
	}
	return "the group " + gid
}
