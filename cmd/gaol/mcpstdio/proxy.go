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
	"sync"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Proxy forwards the requests of one client to a server.
type Proxy struct {
	*mcp.Server // to be served to the client

	client   *mcp.Client
	upstream Upstream
	ctx      context.Context // of all calls
	cancel   context.CancelFunc

	mu       sync.Mutex
	session  *mcp.ClientSession // nil if the connection has failed
	calls    int
	progress map[string]reporting // calls that report progress, by the token that the server has got
}

// reporting is a call whose client has asked for progress.
type reporting struct {
	client *mcp.ServerSession
	token  any // any JSON
}

// NewProxy connects to a server. The caller closes the proxy.
func NewProxy(ctx context.Context, u Upstream, version string) (*Proxy, error) {
	p := &Proxy{upstream: u, progress: map[string]reporting{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	name := &mcp.Implementation{Name: "gaol", Title: "gaol sandboxes", Version: version}
	p.client = mcp.NewClient(name, &mcp.ClientOptions{
		Capabilities:                &mcp.ClientCapabilities{},
		ProgressNotificationHandler: p.passProgress,
	})
	session, err := p.connect(ctx)
	if err != nil {
		p.cancel()
		return nil, u.explain(err)
	}
	first := session.InitializeResult()
	p.Server = mcp.NewServer(name, &mcp.ServerOptions{
		Instructions: first.Instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}},
	})
	p.AddReceivingMiddleware(p.forward)
	return p, nil
}

// HasTools reports whether the server has tools whose names have a prefix.
func (p *Proxy) HasTools(ctx context.Context, prefix string) (bool, error) {
	s, err := p.connect(ctx)
	if err != nil {
		return false, err
	}
	for t, err := range s.Tools(ctx, nil) {
		if err != nil || strings.HasPrefix(t.Name, prefix) {
			return err == nil, err
		}
	}
	return false, nil
}

// Abandon ends all calls that are in progress, on the server, too.
func (p *Proxy) Abandon() { p.cancel() }

// Close ends all calls and the connection.
func (p *Proxy) Close() {
	p.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		_ = p.session.Close() // the server may have gone
	}
	p.upstream.client.CloseIdleConnections()
}

// connect returns the session with the server. After a failure it is a new one.
func (p *Proxy) connect(ctx context.Context) (*mcp.ClientSession, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		return p.session, nil
	}
	s, err := p.client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: p.upstream.url, HTTPClient: p.upstream.client, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: -1,
	}, nil)
	if err == nil {
		p.session = s
	}
	return s, err
}

// forward sends requests about tools and resources to the server. The SDK replies to all others.
func (p *Proxy) forward(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		send := p.sender(req)
		if send == nil {
			return next(ctx, method, req)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(p.ctx, cancel)()
		s, err := p.connect(ctx)
		if err != nil {
			return nil, p.upstream.explain(err)
		}
		res, err := send(ctx, s)
		if err == nil {
			return res, nil
		}
		_, isReply := errors.AsType[*jsonrpc.Error](err)
		_, unsent := errors.AsType[*url.Error](err) // which the SDK calls a reply, too
		if isReply && !unsent || ctx.Err() != nil {
			return nil, err
		}
		p.drop(s)
		return nil, p.upstream.explain(err)
	}
}

// sender returns the function that sends a request to the server, or nil if the request is not
// forwarded.
func (p *Proxy) sender(req mcp.Request) func(context.Context, *mcp.ClientSession) (mcp.Result, error) {
	switch r := req.(type) {
	case *mcp.ListToolsRequest:
		return func(ctx context.Context, s *mcp.ClientSession) (mcp.Result, error) {
			return result(s.ListTools(ctx, &mcp.ListToolsParams{Cursor: orZero(r.Params).Cursor}))
		}
	case *mcp.CallToolRequest:
		return func(ctx context.Context, s *mcp.ClientSession) (mcp.Result, error) { return p.call(ctx, s, r) }
	case *mcp.ListResourcesRequest:
		return func(ctx context.Context, s *mcp.ClientSession) (mcp.Result, error) {
			return result(s.ListResources(ctx, &mcp.ListResourcesParams{Cursor: orZero(r.Params).Cursor}))
		}
	case *mcp.ListResourceTemplatesRequest:
		return func(ctx context.Context, s *mcp.ClientSession) (mcp.Result, error) {
			return result(s.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: orZero(r.Params).Cursor}))
		}
	case *mcp.ReadResourceRequest:
		return func(ctx context.Context, s *mcp.ClientSession) (mcp.Result, error) {
			return result(s.ReadResource(ctx, &mcp.ReadResourceParams{URI: r.Params.URI}))
		}
	}
	return nil
}

// orZero returns the parameters of a list, which may be absent.
func orZero[P any](p *P) *P {
	if p == nil {
		return new(P)
	}
	return p
}

// result avoids an interface with a nil pointer.
func result[R mcp.Result](r R, err error) (mcp.Result, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// call calls a tool, and passes its progress on.
func (p *Proxy) call(ctx context.Context, s *mcp.ClientSession, r *mcp.CallToolRequest) (mcp.Result, error) {
	params := &mcp.CallToolParams{Name: r.Params.Name, Arguments: r.Params.Arguments}
	if token := r.Params.GetProgressToken(); token != nil {
		own, forget := p.report(reporting{r.Session, token})
		defer forget()
		params.SetProgressToken(own)
	}
	return result(s.CallTool(ctx, params))
}

// report passes progress on, until forget is called.
func (p *Proxy) report(r reporting) (token string, forget func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	token = strconv.Itoa(p.calls)
	p.progress[token] = r
	return token, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.progress, token)
	}
}

func (p *Proxy) passProgress(ctx context.Context, r *mcp.ProgressNotificationClientRequest) {
	token, ok := r.Params.ProgressToken.(string)
	p.mu.Lock()
	call := p.progress[token]
	p.mu.Unlock()
	if !ok || call.client == nil {
		return
	}
	params := *r.Params
	params.ProgressToken, params.Meta = call.token, nil
	_ = call.client.NotifyProgress(ctx, &params) // the client may have gone
}

// drop discards a failed session.
func (p *Proxy) drop(s *mcp.ClientSession) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == s {
		p.session = nil
	}
	go func() { _ = s.Close() }() // it waits for other calls
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

// CloseIdleConnections closes the idle connections of the transport.
func (w withToken) CloseIdleConnections() {
	if c, ok := w.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func redirects(*http.Request, []*http.Request) error { return fmt.Errorf("the server redirects") }

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

// explain returns an error that names the remedy for a failed connection.
func (u Upstream) explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no server at %s: start one with gaol serve, or set GAOL_SOCKET to its socket", u.address)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission for %s: %s", u.address, membership(u.address))
	}
	return fmt.Errorf("server at %s: %w", u.address, err)
}

// membership names the group that may connect to a socket.
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
