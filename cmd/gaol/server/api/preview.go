package api

import (
	"cmp"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"gaol/cmd/gaol/server/service"
)

// ServePreview serves a request whose Host is PORT-SANDBOX.DOMAIN, with the operator's domain. The
// unguessable ID of the sandbox is its only credential. Each port of each sandbox has a separate
// origin, where the guest's pages may do anything. It returns false for other hosts. isSecret
// reports whether a header Authorization contains a token of the server, which no guest gets.
func ServePreview(s *service.Service, w http.ResponseWriter, r *http.Request, isSecret func(string) bool) bool {
	port, id, ok := parsePreviewHost(r.Host, s.Settings().PreviewHost)
	if !ok {
		return false
	}
	ctx, sb, release, err := s.UseByID(r.Context(), id)
	if err != nil {
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		ProblemOf(err).Write(w)
		return true
	}
	defer release()
	if isSecret(r.Header.Get("Authorization")) {
		r = r.Clone(ctx)
		r.Header.Del("Authorization")
	}
	serveGuest(ctx, w, r, sb, &ownOrigin{port: port, secure: r.TLS != nil})
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
