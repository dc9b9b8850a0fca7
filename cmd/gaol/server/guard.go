package server

import (
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

	"github.com/felixge/httpsnoop"

	"gaol/cmd/gaol/playground"
	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
)

// public are the paths that need no tenant.
var public = []string{"/healthz", "/readyz", api.DocumentPath}

// guard validates and authenticates each request.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
		if len(r.TransferEncoding) > 0 {
			// A request with chunks may also have had a Content-Length, which http.Server hides. Bytes that a
			// proxy took for its body must not be the next request (RFC 9112, 6.1).
			w.Header().Set("Connection", "close")
		}
		if !connOf(r).isUnix() && api.ServePreview(s.service, w, r, s.isToken) { // a sandbox's own host name
			return
		}
		s.setCORS(w, r)
		if status, why := s.refuse(r); status != 0 {
			api.WriteProblem(w, status, why)
			return
		}
		if s.preflight(w, r) {
			return
		}
		switch {
		case s.isPlayground(r):
			playground.Serve(w, r, s.service.Settings().Playground.FrameAncestors)
		case slices.Contains(public, r.URL.Path):
			next.ServeHTTP(w, r)
		default:
			s.serveTenant(w, r, next)
		}
	})
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
	account := s.service.Account(t)
	held, err := account.Reserve(quota.Limits{Concurrent: 1, Bodies: bodyBytes(r)})
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	defer held.Release()
	next.ServeHTTP(w, r.WithContext(api.WithQuota(tenant.NewContext(r.Context(), t), account, held)))
}

// count counts a request of a tenant, or returns an error if there are too many: of the tenant, or of an anonymous caller's
// address.
func (s *Server) count(t *tenant.Tenant, r *http.Request) error {
	set := s.service.Settings().Snippets.Anonymous
	if t.Name == settings.AnonymousTenant && set != nil { // nil: the settings have been replaced
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
			s.service.Log().Warn("a connection without a tenant", "err", c.err)
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
	bodyTime time.Duration // see times
}

// exchange holds the facts about a request that are counted and logged.
type exchange struct {
	operation string         // the pattern of the path; empty if the request did not get that far
	tenant    *tenant.Tenant // nil for a request that was refused before, or that needs none
	body      timedBody
	response  httpsnoop.Metrics
	record    *audit.Record
}

// exchangeKey is the context key of an exchange.
type exchangeKey struct{}

// observe serves requests with next, and then counts and logs them.
func (o *observer) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &exchange{response: httpsnoop.Metrics{Code: http.StatusOK}}
		ctx := context.WithValue(r.Context(), exchangeKey{}, seen)
		if o.audit.Enabled() {
			ctx, seen.record = audit.NewContext(ctx, o.writeAudit)
		}
		r = r.WithContext(ctx)
		seen.body.limit(w, r, o.bodyTime)
		defer o.finish(r, seen) // also if a handler panics to abort the response
		seen.response.CaptureMetrics(w, func(w http.ResponseWriter) { next.ServeHTTP(seen.withUpgrade(w, r), r) })
	})
}

// withUpgrade records the status of a WebSocket's handshake, which httpsnoop omits.
func (e *exchange) withUpgrade(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if r.Header.Get("Upgrade") == "" {
		return w
	}
	return httpsnoop.Wrap(w, httpsnoop.Hooks{WriteHeader: func(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
		return func(code int) {
			if code == http.StatusSwitchingProtocols {
				e.response.Code = code
			}
			next(code)
		}
	}})
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
		}()
		next.ServeHTTP(w, r)
	})
}

// finish counts and logs a request.
func (o *observer) finish(r *http.Request, seen *exchange) {
	answer := seen.response
	o.metrics.Request(seen.operation, answer.Code, answer.Duration)
	name, read := "", seen.body.received.Load()
	if seen.tenant != nil {
		name = seen.tenant.Name
	}
	o.log.Debug("request", "method", r.Method, "path", r.URL.Path, "tenant", name, "status", answer.Code,
		"duration", answer.Duration, "bytesIn", read, "bytesOut", answer.Written)
	if seen.tenant == nil {
		return // the log must not grow without a tenant whose quota of requests bounds it
	}
	seen.record.Update(func(e *audit.Entry) {
		if e.Action == "" {
			e.Action = seen.operation
		}
		e.BytesIn, e.BytesOut = read, answer.Written
	})
	seen.record.End(answer.Code)
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
