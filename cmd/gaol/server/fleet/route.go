package fleet

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/fleet/identity"
	"gaol/cmd/gaol/server/fleet/member"
	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
)

// tenantHeader contains the name of the tenant of a request between nodes. Only the listener for nodes accepts it.
const tenantHeader = "Gaol-Fleet-Tenant"

// traceHeader contains the trace of a request between nodes. The header Traceparent is the client's.
const traceHeader = "Gaol-Fleet-Trace"

// requestHeader contains the id of a request between nodes.
const requestHeader = "Gaol-Fleet-Request"

// maxRequestID bounds the id of a request in bytes.
const maxRequestID = 32

// Identify gives requests a new id, or that of the node that sends them.
func (f *Fleet) Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestHeader)
		if id == "" || len(id) > maxRequestID || identity.Peer(r.TLS) == "" {
			id = strings.ToLower(rand.Text())
		}
		r.Header.Del(requestHeader)
		next.ServeHTTP(w, r.WithContext(service.WithRequest(r.Context(), id)))
	})
}

// trace begins a span for a request to another node, if the node traces requests. It returns the value of traceHeader.
func (f *Fleet) trace(ctx context.Context, r *http.Request, node string) (header string, end func()) {
	if f.Tracer == nil {
		return "", func() {}
	}
	client := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.Header))
	ctx, span := f.Tracer.Start(ctx, "forward", trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(trace.LinkFromContext(client)),
		trace.WithAttributes(attribute.String("gaol.node", node)))
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"], func() { span.End() }
}

// Traced returns a request of another node in its trace, with the node in the audit log.
func Traced(r *http.Request) *http.Request {
	audit.Of(r.Context()).Update(func(e *audit.Entry) { e.Gateway = identity.Peer(r.TLS) })
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.MapCarrier{"traceparent": r.Header.Get(traceHeader)})
	r.Header.Del(traceHeader)
	return r.WithContext(ctx)
}

// Route serves the requests of tenants that are for another node there, and others with local.
func (f *Fleet) Route(local http.Handler) http.Handler {
	ofSandbox := f.RouteSandbox(local)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && lists[r.URL.Path] != "" {
			f.serveList(w, r, local)
			return
		}
		node, end, err := f.ID(), func() {}, error(nil)
		if tenant.Lookup(r.Context()) != nil && r.Method == http.MethodPost && slices.Contains(placedPaths, r.URL.Path) {
			node, end, err = f.place(r)
		}
		defer end()
		switch {
		case err != nil:
			api.ProblemOf(err).Write(w)
		case node == f.ID():
			ofSandbox.ServeHTTP(w, r)
		default:
			f.Forward(w, r, node)
		}
	})
}

// placedPaths are the paths of requests that any node can serve: to create a sandbox, or to run a program in a new one.
var placedPaths = []string{"/v1/sandboxes", "/v1/run", "/v1/command", "/v1/evaluate", operation.SnippetPath}

// Lost returns why a sandbox that is not here is lost or cannot be reached, nil if it may never have existed.
func (f *Fleet) Lost(sandbox string) error {
	if _, ok := f.adopted.Load(sandbox); !ok && f.movedTo(sandbox) == f.ID() { // it was here
		return errLost
	}
	_, err := f.Owner(sandbox)
	return err
}

// Owner returns the node that keeps a sandbox, or something else with an id of [Fleet.NewID].
func (f *Fleet) Owner(id string) (node string, err error) {
	node, start := parseID(id)
	if moved := f.movedTo(id); moved != "" {
		node, start = moved, f.start
	}
	switch {
	case node == "":
		return f.ID(), nil // which does not have it
	case node == f.ID() && start != f.start:
		return "", errLost
	case node == f.ID():
		return node, nil
	}
	m := f.Member()
	switch s := m.Get(node); {
	case s.State == member.Dead, s.State == member.Unknown && m.IsCurrent():
		return "", errLost
	case s.State == member.Unknown, !s.Speaks():
		return "", errUnreachable
	}
	return node, nil
}

var (
	errLost        = service.Refuse(service.SandboxLost, "the sandbox is lost: its node has left the fleet, or was started again")
	errUnreachable = &service.Error{Code: service.Unreachable, Err: errors.New("the sandbox's node cannot be reached now"), RetryAfter: time.Second}
	errNodeLost    = service.Refuse(service.NodeLost, "the node was lost during the operation, which may have had effects")
	errNoNode      = &service.Error{Code: service.Unreachable, Err: errors.New("no node of the fleet can serve the request now"), RetryAfter: time.Second}
)

// place returns the node for new work. A body that is small enough is examined for names of images and snapshots, which the node must
// have, and for folders of this machine.
func (f *Fleet) place(r *http.Request) (node string, end func(), err error) {
	body := bufio.NewReaderSize(r.Body, quota.LargeText)
	text, err := body.Peek(quota.LargeText)
	r.Body = struct {
		io.Reader
		io.Closer
	}{body, r.Body}
	var in placed
	if err == io.EOF { // the text is complete
		_ = json.Unmarshal(text, &in) // the operation refuses other texts
	}
	return f.choose(r.Context(), tenant.FromContext(r.Context()), in)
}

// choose returns the node for new work. The caller calls end when it has ended.
func (f *Fleet) choose(ctx context.Context, t *tenant.Tenant, in placed) (node string, end func(), err error) {
	end = func() {}
	switch {
	case in.isOfHost():
		return f.ID(), end, nil
	case len(in.names()) > 0:
		return f.placeNamed(ctx, t, in), end, nil
	}
	node = f.Member().Pick(f.service.Load().Busy(), f.Member().IsDraining())
	if node == "" {
		return "", end, errNoNode
	}
	return node, func() { f.Member().Ended(node) }, nil
}

// NameOf returns the name of a tenant for other nodes: users of other machines are others.
func (f *Fleet) NameOf(t *tenant.Tenant) string {
	if strings.HasPrefix(t.Name, "uid:") && !strings.Contains(t.Name, "@") {
		return t.Name + "@" + f.state.Machine
	}
	return t.Name
}

// TenantOf returns the tenant of a request that another node has forwarded.
func (f *Fleet) TenantOf(r *http.Request) (*tenant.Tenant, error) {
	name, hops := r.Header.Get(tenantHeader), len(r.Header.Values(tenantHeader))
	r.Header.Del(tenantHeader)
	if name == "" || len(name) > maxTenant {
		return nil, service.Refuse(service.Invalid, "want the name of a tenant in %s", tenantHeader)
	}
	t := f.TenantNamed(name)
	t.Forwarded, t.Hops = true, hops
	return t, nil
}

// TenantNamed returns the tenant whose [Fleet.NameOf] a name is.
func (f *Fleet) TenantNamed(name string) *tenant.Tenant {
	if strings.HasPrefix(name, "uid:") {
		name = strings.TrimSuffix(name, "@"+f.state.Machine)
	}
	return &tenant.Tenant{Name: name}
}

// maxHops is how often a request is forwarded: a second time, if its sandbox has just moved.
const maxHops = 2

// header returns the values of tenantHeader. There are as many as nodes that have forwarded the request.
func (f *Fleet) header(t *tenant.Tenant) []string {
	return slices.Repeat([]string{f.NameOf(t)}, t.Hops+1)
}

// Events have their own connections between nodes, of port eventsPort in URLs, in whose sockets few bytes wait: a process that waits for its
// readers keeps 512 KiB of events for a reader that connects again.
const (
	EventsBuffer = 64 << 10
	eventsPort   = "1"
)

// IsEvents reports whether a request between nodes has such a connection.
func IsEvents(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/events") }

// maxTenant bounds the name of a tenant in bytes.
const maxTenant = 256

// Forward passes a request to another node, and its response to the client. Requests without a tenant are those of previews, whose
// header Authorization is for the guest.
func (f *Fleet) Forward(w http.ResponseWriter, r *http.Request, node string) {
	t, begin := tenant.Lookup(r.Context()), time.Now()
	if f.Member().IsDead(f.ID()) || t != nil && t.Hops >= maxHops { // the node would refuse it, or nodes send it to each other
		api.ProblemOf(errNoNode).Write(w)
		return
	}
	ctx, end, err := f.begin(r.Context(), t)
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	defer end()
	ctx, cancel := f.Member().While(ctx, node)
	defer cancel()
	header, endSpan := f.trace(ctx, r, node)
	defer endSpan()
	host := node
	if IsEvents(r) {
		host = net.JoinHostPort(node, eventsPort)
	}
	proxy := &httputil.ReverseProxy{
		Transport: f.http.Transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = &url.URL{Scheme: "https", Host: host, Path: p.In.URL.Path, RawPath: p.In.URL.RawPath, RawQuery: p.In.URL.RawQuery}
			p.Out.Host = p.In.Host
			p.Out.Header.Del(tenantHeader)
			p.Out.Header.Del(callHeader)
			p.Out.Header.Set(traceHeader, header)
			p.Out.Header.Set(requestHeader, service.RequestOf(ctx))
			p.SetXForwarded() // for previews
			if t != nil {
				p.Out.Header.Del("Authorization")
				p.Out.Header[tenantHeader] = f.header(t)
			}
		},
		ModifyResponse: func(res *http.Response) error {
			f.metrics.forwarded(node, res.StatusCode, begin)
			for _, name := range slices.AppendSeq([]string{"Cache-Control", "Content-Security-Policy", "X-Content-Type-Options"}, maps.Keys(res.Header)) {
				w.Header().Del(name) // of the guard of this node; replies of guests lack the first ones
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) { // whose writes fail after the end of ctx
			p := api.ProblemOf(forwardError(r.Context(), err))
			f.metrics.forwarded(node, p.Status, begin)
			p.Write(w)
		},
	}
	r = r.WithContext(ctx)
	r.Body = &api.Body{ReadCloser: r.Body, W: w, Ctx: ctx}
	proxy.ServeHTTP(&api.Writer{ResponseWriter: w, Ctx: ctx}, r)
}

// begin counts a request that is forwarded, whose end a stop waits for. A request of another node, whose sandbox has just moved, is
// forwarded during a stop, too.
func (f *Fleet) begin(ctx context.Context, t *tenant.Tenant) (_ context.Context, end func(), err error) {
	if t == nil || !t.Forwarded {
		return f.service.Load().Begin(ctx)
	}
	f.again.Add(1)
	return ctx, func() { f.again.Add(-1) }, nil
}

// WaitForwards waits until no request of another node is being forwarded, or ctx ends.
func (f *Fleet) WaitForwards(ctx context.Context) {
	for f.again.Load() > 0 && engine.Sleep(ctx, waitEvery) {
	}
}

// waitEvery is how often WaitForwards looks.
const waitEvery = 10 * time.Millisecond

// forwardError returns the error of a request that could not be forwarded, or that got no response.
func forwardError(ctx context.Context, err error) error {
	if _, notSent := errors.AsType[*dialError](err); notSent {
		return errUnreachable
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, member.ErrDead) {
		return cause // the client has gone
	}
	if p, bad := errors.AsType[*api.Problem](err); bad { // of the body
		return p
	}
	return errNodeLost
}

// startLength is the number of characters that name a start of a node in the ids of its sandboxes.
const startLength = 4

// NewID returns an id of something that this node keeps, such as a sandbox, with a prefix that ends in "-". It cannot be guessed.
func (f *Fleet) NewID(prefix string) string {
	return prefix + f.ID() + "-" + f.start + strings.ToLower(rand.Text())
}

// parseID returns the node of an id of [Fleet.NewID], and the start of the node in which it was made. They are empty if the id names
// none.
func parseID(id string) (node, start string) {
	_, rest, ok := strings.Cut(id, "-")
	node, random, found := strings.Cut(rest, "-")
	if !ok || !found || !identity.IsID(node) || len(random) < startLength {
		return "", ""
	}
	return node, random[:startLength]
}
