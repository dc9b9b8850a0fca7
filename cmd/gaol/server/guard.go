package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"gaol/cmd/gaol/playground"
	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
)

// public are the paths that need no tenant.
var public = []string{"/healthz", "/readyz", api.DocumentPath}

// guard validates and authenticates each request.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w)
		if len(r.TransferEncoding) > 0 {
			// A request with chunks may also have had a Content-Length, which http.Server hides. Bytes that a
			// proxy took for its body must not be the next request (RFC 9112, 6.1).
			w.Header().Set("Connection", "close")
		}
		if !connOf(r).isUnix() && api.ServePreview(s.service, w, r, s.isToken, s.forwardPreview) { // a sandbox's own host name
			return
		}
		s.setCORS(w, r)
		if status, why := s.refuse(r); status != 0 {
			api.WriteProblem(w, status, why)
			return
		}
		switch {
		case s.preflight(w, r):
		case s.isPlayground(r):
			playground.Serve(w, r, s.service.Settings().Playground.FrameAncestors)
		case slices.Contains(public, r.URL.Path):
			next.ServeHTTP(w, r)
		default:
			s.serveTenant(w, r, next)
		}
	})
}

// setHeaders sets the headers of all responses that have no others.
func setHeaders(w http.ResponseWriter) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
}

// isToken reports whether a header Authorization contains a token of this server.
func (s *Server) isToken(header string) bool {
	tokens := s.tokens.Load()
	_, secret, _ := strings.Cut(strings.TrimSpace(header), " ")
	return tokens != nil && tokens.Find(strings.TrimSpace(secret)) != nil
}

// isPlayground reports whether a request reads the page for people, which is the same for all callers. It needs
// neither a tenant nor an allowed origin: links on other sites lead to it, and other sites load its
// script for embedding. The page's requests need both.
func (s *Server) isPlayground(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && playground.Has(r.URL.Path) && !s.service.Settings().Playground.Off
}

// serveTenant serves a request with its tenant, within the tenant's quotas.
func (s *Server) serveTenant(w http.ResponseWriter, r *http.Request, next http.Handler) {
	t, why := s.identify(r)
	if t == nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		api.WriteProblem(w, http.StatusUnauthorized, why)
		return
	}
	if err := s.count(t, r); err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	s.serveAs(w, r, t, next)
}

// count counts a request of a tenant, or returns an error if there are too many: of the tenant, or of an anonymous caller's
// address.
func (s *Server) count(t *tenant.Tenant, r *http.Request) error {
	// nil: the settings have been replaced
	if set := s.service.Settings().Snippets.Anonymous; t.Name == settings.AnonymousTenant && set != nil {
		if wait := s.addresses.count(clientAddress(r, set.Proxies), set.PerMin(), time.Now()); wait > 0 {
			return &service.Error{Code: service.Exceeded, Err: fmt.Errorf("your address has sent more than %v requests in a minute", set.PerMin()), RetryAfter: wait}
		}
	}
	return s.service.Account(t).Request()
}

// bodyBytes returns how much memory the text of a request's body may need: JSON is kept in memory.
func bodyBytes(r *http.Request) int64 {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case kind != "application/json" || api.IsPort(r):
		return 0
	case r.ContentLength < 0 || r.ContentLength > api.MaxBody:
		return api.MaxBody
	default:
		return r.ContentLength
	}
}

// refuse returns the status for a request that no tenant may make, and why; 0 if it may pass.
func (s *Server) refuse(r *http.Request) (status int, why string) {
	port := api.IsPort(r)
	switch {
	case !port && path.Clean(r.URL.Path) != r.URL.Path && path.Clean(r.URL.Path)+"/" != r.URL.Path:
		return http.StatusBadRequest, "the path has empty, . or .. components"
	case !s.isOwnHost(r):
		// A page of another host that resolves to this machine (DNS rebinding) sends its own name.
		return http.StatusMisdirectedRequest, "the header Host does not name this server; its operator can add names"
	case !s.isAllowedOrigin(r) && !s.isPlayground(r):
		return http.StatusForbidden, "web pages of this origin may not use the server"
	case !port && !isJSON(r):
		// A web page can send other types to any server, without asking it first.
		return http.StatusUnsupportedMediaType, "want Content-Type: application/json"
	}
	return 0, ""
}

// isOwnHost reports whether the request was meant for this server. On a unix socket any host is
// right: browsers cannot connect to it.
func (s *Server) isOwnHost(r *http.Request) bool {
	c := connOf(r)
	if c.isUnix() {
		return true
	}
	host := strings.ToLower(strings.TrimSuffix((&url.URL{Host: r.Host}).Hostname(), "."))
	if host == "localhost" || slices.Contains(s.service.Settings().Hosts, host) {
		return true
	}
	a, err := netip.ParseAddr(host)
	local, ok := c.LocalAddr().(*net.TCPAddr)
	return err == nil && ok && (a.IsLoopback() || a.Unmap() == local.AddrPort().Addr().Unmap())
}

// isAllowedOrigin reports whether the request comes from no web page, from a page of the server itself,
// or from an origin that the operator allows.
func (s *Server) isAllowedOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		site := r.Header.Get("Sec-Fetch-Site") // browsers omit Origin for GET
		return site == "" || site == "same-origin" || site == "none"
	}
	if slices.Contains(s.service.Settings().Origins, origin) || s.allowsCORS(r) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host && u.Host != ""
}

// isJSON reports whether a request's body is empty or JSON. Other bodies are for paths that accept them.
func isJSON(r *http.Request) bool {
	if r.ContentLength == 0 || r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodPut {
		return true
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// identify returns the tenant of a request, or why there is none.
func (s *Server) identify(r *http.Request) (t *tenant.Tenant, why string) {
	secret, hasToken := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if c := connOf(r); c.isUnix() {
		if c.err != nil {
			s.service.Log().WarnContext(r.Context(), "a connection without a tenant", "err", c.err)
			return nil, "the caller's user is unknown"
		}
		return c.tenant, ""
	}
	if t = s.anonymous(r); t != nil {
		return t, ""
	}
	tokens := s.tokens.Load()
	if !hasToken || tokens == nil {
		return nil, "want Authorization: Bearer and a token"
	}
	if t = tokens.Find(secret); t == nil {
		return nil, "the token is unknown"
	}
	return t, ""
}

// allowsCORS reports whether the operator allows pages of the request's origin to run snippets, and the
// request is about them.
func (s *Server) allowsCORS(r *http.Request) bool {
	return r.URL.Path == operation.SnippetPath && slices.Contains(s.service.Settings().Snippets.Origins, r.Header.Get("Origin"))
}

// setCORS sets the CORS headers, on error responses too. There are no cookies, so that a page cannot act
// as its user.
func (s *Server) setCORS(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != operation.SnippetPath {
		return
	}
	w.Header().Add("Vary", "Origin")
	if s.allowsCORS(r) {
		w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
	}
}

// preflight answers a CORS preflight request, and reports whether r is one.
func (s *Server) preflight(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" || !s.allowsCORS(r) {
		return false
	}
	w.Header().Set("Access-Control-Allow-Methods", "GET, POST")
	w.Header().Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type")
	w.Header().Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// observer counts and logs requests.
type observer struct {
	metrics  *service.Metrics
	audit    *audit.Log
	log      *slog.Logger
	tracer   trace.Tracer  // may be nil
	bodyTime time.Duration // see times
}

// exchange holds the facts about a request that are counted and logged.
type exchange struct {
	operation string         // the pattern of the path; empty if the request did not get that far
	tenant    *tenant.Tenant // nil for a request that was refused before, or that needs none
	begin     time.Time
	body      timedBody
	response  response
	record    *audit.Record
}

// exchangeKey is the context key of an exchange.
type exchangeKey struct{}

// observe serves requests with next, and then counts and logs them.
func (o *observer) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &exchange{begin: time.Now(), response: response{ResponseWriter: w, status: http.StatusOK}}
		ctx := context.WithValue(r.Context(), exchangeKey{}, seen)
		if o.audit.Enabled() {
			ctx, seen.record = audit.NewContext(ctx, o.writeAudit)
		}
		r = r.WithContext(ctx)
		seen.body.limit(w, r, o.bodyTime)
		defer o.finish(r, seen) // also if a handler panics to abort the response
		next.ServeHTTP(&seen.response, r)
	})
}

// response records the status and size of a response. It has no ReadFrom: net/http would use it for sendfile, but a [conn]
// has none either.
type response struct {
	http.ResponseWriter
	status int
	begun  bool // the status is final
	size   int64
}

// Unwrap is for [http.ResponseController].
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status)
	if !w.begun && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status, w.begun = status, true
	}
}

func (w *response) Write(p []byte) (n int, err error) {
	w.begun = true
	n, err = w.ResponseWriter.Write(p)
	w.size += int64(n)
	return n, err
}

// attribute records the tenant of a request that the guard has let pass, and its operation.
func (o *observer) attribute(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := r.Context().Value(exchangeKey{}).(*exchange)
		if seen.tenant = tenant.Lookup(r.Context()); seen.tenant != nil {
			seen.record.SetTenant(seen.tenant)
		}
		defer func() { // the multiplexer has set the fields of r
			seen.operation = r.Pattern
			if id := r.PathValue("id"); id != "" {
				seen.record.SetSandbox(id)
			}
			o.trace(r, seen)
		}()
		next.ServeHTTP(w, r)
	})
}

// trace records the span of a request that does not come from monitoring. A tenant's span becomes a
// link and not the parent: a tenant does not decide which of the server's spans are recorded.
func (o *observer) trace(r *http.Request, seen *exchange) {
	if o.tracer == nil || slices.Contains([]string{"/healthz", "/readyz", "/metrics"}, r.URL.Path) {
		return
	}
	method, name := r.Method, r.Method
	if !slices.Contains(strings.Fields("CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT TRACE"), method) {
		method, name = "_OTHER", "HTTP" // bounds the number of names
	}
	route := r.Pattern[max(0, strings.Index(r.Pattern, "/")):]
	scheme := map[bool]string{false: "http", true: "https"}[r.TLS != nil]
	peer, _, _ := net.SplitHostPort(r.RemoteAddr) // fails for a unix socket
	forwarded, _, _ := strings.Cut(r.Header.Get("X-Forwarded-For"), ",")
	attributes := []attribute.KeyValue{attribute.Int("http.response.status_code", seen.response.status),
		attribute.Int64("http.request.body.size", seen.body.received.Load()), attribute.Int64("http.response.body.size", seen.response.size)}
	for key, value := range map[string]string{
		"http.request.method": method, "http.route": route, "url.scheme": scheme, "url.path": r.URL.Path, "user_agent.original": r.UserAgent(),
		"server.address": (&url.URL{Host: r.Host}).Hostname(), "client.address": cmp.Or(forwarded, peer), "network.peer.address": peer,
	} {
		if value != "" {
			attributes = append(attributes, attribute.String(key, strings.ToValidUTF8(value, "\uFFFD"))) // as protobuf demands
		}
	}
	caller := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.Header))
	_, span := o.tracer.Start(r.Context(), strings.TrimSpace(name+" "+route), trace.WithTimestamp(seen.begin), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithLinks(trace.LinkFromContext(caller)), trace.WithAttributes(attributes...))
	if seen.response.status >= 500 {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// finish counts and logs a request.
func (o *observer) finish(r *http.Request, seen *exchange) {
	status, written, duration := seen.response.status, seen.response.size, time.Since(seen.begin)
	o.metrics.Request(seen.operation, status, duration)
	name, read := "", seen.body.received.Load()
	if seen.tenant != nil {
		name = seen.tenant.Name
	}
	o.log.DebugContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path, "tenant", name, "status", status,
		"duration", duration, "bytesIn", read, "bytesOut", written)
	if seen.tenant == nil {
		return // the log must not grow without a tenant whose quota of requests bounds it
	}
	seen.record.Update(func(e *audit.Entry) {
		e.Action = cmp.Or(e.Action, seen.operation)
		e.BytesIn, e.BytesOut = read, written
	})
	seen.record.End(status)
}

// writeAudit writes a line of the audit log.
func (o *observer) writeAudit(e audit.Entry) {
	if err := o.audit.Write(e); err != nil {
		o.metrics.AuditLost()
		o.log.Error("a line is lost", "err", err)
	}
}

// addMetrics adds the metrics, for administrators.
func (s *Server) addMetrics(mux *http.ServeMux) {
	serve := s.observer.metrics.Handler()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if !tenant.FromContext(r.Context()).Admin {
			api.WriteProblem(w, http.StatusForbidden, "only root, or a token with the right admin, may read the metrics")
			return
		}
		serve.ServeHTTP(w, r)
	})
}
