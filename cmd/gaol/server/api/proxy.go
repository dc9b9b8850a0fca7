package api

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
)

// servePort serves a request to a guest's port.
func servePort(s *service.Service, w http.ResponseWriter, r *http.Request, t portTarget) {
	if r.Method == http.MethodConnect || r.Method == http.MethodTrace {
		WriteProblem(w, http.StatusMethodNotAllowed, "")
		return
	}
	// a proxy in front of the server could understand them as another path
	if slices.ContainsFunc(strings.Split(r.URL.Path, "/"), func(e string) bool { return e == "." || e == ".." }) {
		WriteProblem(w, http.StatusBadRequest, "the path has . or .. components")
		return
	}
	port, ok := parsePort(t.port)
	if !ok {
		WriteProblem(w, http.StatusUnprocessableEntity, "port: want a number of 1 to 65535")
		return
	}
	ctx, sb, release, err := s.Use(r.Context(), tenant.FromContext(r.Context()), t.sandbox)
	if err != nil {
		ProblemOf(err).Write(w)
		return
	}
	defer release()
	serveGuest(ctx, w, r, sb, &apiOrigin{port, t})
}

// parsePort parses a TCP port in its only form.
func parsePort(s string) (uint16, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil && n > 0 && strconv.FormatUint(n, 10) == s
}

// guestOrigin is the origin on which a guest's responses appear.
type guestOrigin interface {
	// rewrite completes a request to the guest.
	rewrite(r *httputil.ProxyRequest)

	// restrict changes the header of a response of the guest.
	restrict(h http.Header, request *http.Request)
}

// serveGuest passes a request to a guest's server.
func serveGuest(ctx context.Context, w http.ResponseWriter, r *http.Request, sb *service.Sandbox, origin guestOrigin) {
	held, err := sb.Connect()
	if err != nil {
		ProblemOf(err).Write(w)
		return
	}
	defer held.Release()
	most := sb.MaxUpload()
	if r.ContentLength > most {
		ProblemOf(service.PortError(&http.MaxBytesError{Limit: most}, "")).Write(w)
		return
	}
	clear(w.Header()) // the response's are added
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, &Body{r.Body, w, ctx}, most)
	transport := sb.NewTransport()
	defer transport.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // event streams
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			cleanRequest(p)
			origin.rewrite(p)
		},
		ModifyResponse: func(res *http.Response) error { return cleanResponse(res, origin) },
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) { // whose writes fail after the end of ctx
			origin.restrict(w.Header(), r)
			ProblemOf(service.PortError(err, "the guest's server did not reply with HTTP")).Write(w)
		},
	}
	proxy.ServeHTTP(&finalOnly{Writer{w, ctx}}, r)
}

// finalOnly drops informational responses: they could have any header, and httputil.ReverseProxy
// clears the header of the response with them.
type finalOnly struct{ Writer }

// WriteHeader implements [http.ResponseWriter].
func (w *finalOnly) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status)
	}
}

// cleanRequest removes data that a guest must not see, or could misunderstand.
func cleanRequest(p *httputil.ProxyRequest) {
	p.Out.URL.RawQuery = p.In.URL.RawQuery // also what Go cannot parse
	for _, name := range []string{"Proxy-Authorization", "Proxy-Connection", "Forwarded", "X-Real-Ip", "Via", "Expect"} {
		p.Out.Header.Del(name)
	}
	for name := range p.Out.Header {
		if strings.HasPrefix(name, "X-Forwarded-") {
			p.Out.Header.Del(name)
		}
	}
	if !strings.EqualFold(p.Out.Header.Get("Upgrade"), "websocket") {
		p.Out.Header.Del("Upgrade")
		p.Out.Header.Del("Connection")
	}
}

// pointTo sets the address of a request to the guest.
func pointTo(p *httputil.ProxyRequest, port uint16, escapedPath string) {
	host := "localhost:" + strconv.Itoa(int(port))
	p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", host, host
	p.Out.URL.Path, p.Out.URL.RawPath = escapedPath, ""
	if plain, err := url.PathUnescape(escapedPath); err == nil {
		p.Out.URL.Path, p.Out.URL.RawPath = plain, escapedPath
	}
}

// cleanResponse removes data that a guest must not send to any client.
func cleanResponse(res *http.Response, origin guestOrigin) error {
	switched := res.StatusCode == http.StatusSwitchingProtocols && res.Request.Header.Get("Upgrade") != ""
	if !switched && (res.StatusCode < 200 || res.StatusCode > 599) {
		return errors.New("the status is not one of a response")
	}
	for _, name := range []string{"Strict-Transport-Security", "Alt-Svc", "Clear-Site-Data", "Public-Key-Pins", "Public-Key-Pins-Report-Only", "Expect-Ct", "Nel", "Report-To", "Reporting-Endpoints"} {
		res.Header.Del(name)
	}
	origin.restrict(res.Header, res.Request)
	res.Trailer = nil
	if !switched {
		res.Body = &withoutTrailer{res.Body, res}
	}
	return nil
}

// withoutTrailer removes the trailer, which can have any header.
type withoutTrailer struct {
	io.ReadCloser
	res *http.Response
}

// Read implements [io.Reader].
func (b *withoutTrailer) Read(p []byte) (n int, err error) {
	n, err = b.ReadCloser.Read(p)
	if err != nil {
		b.res.Trailer = nil
	}
	return n, err
}

// Close closes the body, which may also read the trailer.
func (b *withoutTrailer) Close() error {
	defer func() { b.res.Trailer = nil }()
	return b.ReadCloser.Close()
}

// apiOrigin is the API's own origin: a guest's response must have no influence on it, and its
// server must not see the credentials of the API's clients.
type apiOrigin struct {
	port   uint16
	target portTarget
}

func (o *apiOrigin) rewrite(p *httputil.ProxyRequest) {
	for _, name := range []string{"Authorization", "Cookie", "Cookie2", "Origin", "Referer"} {
		p.Out.Header.Del(name)
	}
	pointTo(p, o.port, o.target.rest)
}

// foreign are the headers that would have an effect on the API's origin, or on programs that keep
// credentials for it.
var foreign = []string{
	"Content-Security-Policy", "Content-Security-Policy-Report-Only", "X-Content-Type-Options", "X-Frame-Options",
	"Set-Cookie", "Set-Cookie2", "Authorization", "Proxy-Authorization", "Www-Authenticate", "Authentication-Info",
	"Service-Worker-Allowed", "Set-Login", "Refresh", "Link", "Origin-Agent-Cluster", "Origin-Trial", "Accept-Ch", "Critical-Ch",
	"Permissions-Policy", "Document-Policy", "Referrer-Policy", "Content-Location", "Speculation-Rules", "Sourcemap", "X-Sourcemap",
	"Cross-Origin-Opener-Policy", "Cross-Origin-Embedder-Policy", "Cross-Origin-Resource-Policy", "No-Vary-Search", "Activate-Storage-Access",
	"Cache-Control", "Expires", "Pragma", locationHeader,
}

// locationHeader carries the target of a redirect to another host.
const locationHeader = "Gaol-Location"

func (o *apiOrigin) restrict(h http.Header, request *http.Request) {
	for _, name := range foreign {
		h.Del(name)
	}
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") || strings.HasPrefix(name, "Sec-") && !strings.HasPrefix(name, "Sec-Websocket-") {
			h.Del(name)
		}
	}
	h.Set("Content-Security-Policy", "sandbox; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	o.redirect(h, request)
}

// redirect keeps redirects on the guest's server below the path of its port. A redirect to any
// other place gets another header: a client would follow it with its credentials if it led to this
// server, whose names a guest may know.
func (o *apiOrigin) redirect(h http.Header, request *http.Request) {
	text := h.Get("Location")
	h.Del("Location")
	if text == "" || request == nil {
		return
	}
	to, err := request.URL.Parse(text)
	if err != nil {
		return
	}
	if to.Host != request.URL.Host || to.Scheme != "http" || to.User != nil || to.Opaque != "" {
		h.Set(locationHeader, text)
		return
	}
	h.Set("Location", o.target.prefix+withoutDots(to).RequestURI())
}

// withoutDots returns the path and query of a URL. Clients resolve the elements "..", also escaped
// ones, which must not lead out of the path of the port.
func withoutDots(u *url.URL) *url.URL {
	local := &url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	if !strings.HasPrefix(u.Path, "/") || strings.Contains(u.Path, "/.") || strings.Contains(u.Path, `\`) {
		local.Path, local.RawPath = path.Clean("/"+strings.ReplaceAll(u.Path, `\`, "/")), ""
	}
	return local
}

// ServePreview serves a request whose Host is PORT-SANDBOX.DOMAIN, with the operator's domain. The
// unguessable ID of the sandbox is its only credential. Each port of each sandbox has a separate
// origin, where the guest's pages may do anything. It returns false for other hosts. isSecret
// reports whether a header Authorization contains a token of the server, which no guest gets.
//
// Forward serves requests for sandboxes that another node of a fleet has, and reports whether it has. It may be nil.
func ServePreview(s *service.Service, w http.ResponseWriter, r *http.Request, isSecret func(string) bool, forward func(w http.ResponseWriter, r *http.Request, sandbox string) bool) bool {
	port, id, ok := parsePreviewHost(r.Host, s.Settings().PreviewHost)
	if !ok {
		return false
	}
	if isSecret(r.Header.Get("Authorization")) {
		r = r.Clone(r.Context())
		r.Header.Del("Authorization")
	}
	if forward != nil && forward(w, r, id) {
		return true
	}
	ctx, sb, release, err := s.UseByID(r.Context(), id)
	if err != nil {
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		ProblemOf(err).Write(w)
		return true
	}
	defer release()
	secure := forward != nil && r.TLS != nil || forward == nil && r.Header.Get("X-Forwarded-Proto") == "https" // of another node
	serveGuest(ctx, w, r, sb, &ownOrigin{port: port, secure: secure})
	return true
}

// parsePreviewHost parses the Host of a request.
func parsePreviewHost(host, domain string) (port uint16, id string, ok bool) {
	host = (&url.URL{Host: host}).Hostname()
	label, ok := strings.CutSuffix(strings.ToLower(strings.TrimSuffix(host, ".")), "."+domain)
	if domain == "" || !ok {
		return 0, "", false
	}
	text, id, _ := strings.Cut(label, "-")
	port, ok = parsePort(text)
	return port, id, ok
}

// ownOrigin is the origin of one port of one sandbox.
type ownOrigin struct {
	port   uint16
	secure bool // TLS
}

func (o *ownOrigin) rewrite(p *httputil.ProxyRequest) {
	host := p.In.Host
	pointTo(p, o.port, p.In.URL.EscapedPath())
	p.Out.Header.Set("X-Forwarded-Host", host)
	p.Out.Header.Set("X-Forwarded-Proto", o.scheme())
	// The guest's server sees its own name, because many development servers refuse others.
	if origin := p.In.Header.Get("Origin"); origin == o.scheme()+"://"+host {
		p.Out.Header.Set("Origin", "http://"+p.Out.Host)
	}
}

func (o *ownOrigin) scheme() string {
	if o.secure {
		return "https"
	}
	return "http"
}

func (o *ownOrigin) restrict(h http.Header, _ *http.Request) {
	h.Set("Referrer-Policy", cmp.Or(h.Get("Referrer-Policy"), "same-origin")) // the host name is a credential
	h.Set("X-Robots-Tag", "noindex")
	h.Set("Origin-Agent-Cluster", "?1") // other sandboxes are of the same site
	cookies := h.Values("Set-Cookie")
	h.Del("Set-Cookie")
	for _, text := range cookies {
		// A cookie of the domain would be sent to other sandboxes.
		if c, err := http.ParseSetCookie(text); err == nil {
			c.Domain = ""
			h.Add("Set-Cookie", c.String())
		}
	}
}
