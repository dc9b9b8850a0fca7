package server

import (
	"crypto/tls"
	"net"
	"net/http"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/fleet"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/tenant"
)

// newNodeServer returns the server of the listener for other nodes of the fleet, which serves what they forward with next.
func (s *Server) newNodeServer(next http.Handler) *http.Server {
	next = s.fleet.RouteSandbox(next)
	forwarded := func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w)
		r = fleet.Traced(r)
		if fleet.IsEvents(r) {
			_ = connOf(r).Conn.(*net.TCPConn).SetWriteBuffer(fleet.EventsBuffer)
		}
		if api.ServePreview(s.service, w, r, s.isToken, nil) {
			return
		}
		t, err := s.fleet.TenantOf(r)
		if err != nil {
			api.ProblemOf(err).Write(w)
			return
		}
		s.serveAs(w, r, t, next)
	}
	s.nodeConnections = newConnections()
	h := s.newHTTPServer(s.fleet.NodeHandler(forwarded), s.nodeConnections)
	h.TLSNextProto = s.fleet.Protocols()
	return h
}

// forwardPreview forwards a request for a preview of a sandbox of another node, and reports whether it has.
func (s *Server) forwardPreview(w http.ResponseWriter, r *http.Request, sandbox string) bool {
	if s.fleet == nil {
		return false
	}
	node, err := s.fleet.Owner(sandbox)
	if err != nil || node == s.fleet.ID() { // this server reports the error
		return false
	}
	s.fleet.Forward(w, r, node)
	return true
}

// ServeNodes serves the other nodes of the fleet until Drain.
func (s *Server) ServeNodes() error {
	l, secure := s.fleet.Listener()
	return served(s.nodes.Serve(tls.NewListener(&listener{l, s.nodeConnections, s.times.write}, secure)))
}

// serveAs serves a request of a tenant, within the tenant's quotas.
func (s *Server) serveAs(w http.ResponseWriter, r *http.Request, t *tenant.Tenant, next http.Handler) {
	account := s.service.Account(t)
	held, err := account.Reserve(quota.Limits{Concurrent: 1, Bodies: bodyBytes(r)})
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	defer held.Release()
	next.ServeHTTP(w, r.WithContext(api.WithQuota(tenant.NewContext(r.Context(), t), account, held)))
}

// addFleet adds the paths of gaol fleet, for administrators.
func (s *Server) addFleet(mux *http.ServeMux) {
	admin := s.fleet.AdminHandler()
	mux.HandleFunc("/fleet/v1/", func(w http.ResponseWriter, r *http.Request) {
		if !tenant.FromContext(r.Context()).Admin {
			api.WriteProblem(w, http.StatusForbidden, "only root, or a token with the right admin, may manage the fleet")
			return
		}
		admin.ServeHTTP(w, r)
	})
}
