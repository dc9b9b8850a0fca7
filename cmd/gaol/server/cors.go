package server

import (
	"net/http"
	"slices"

	"gaol/cmd/gaol/server/operation"
)

// mayShare reports whether the operator allows pages of the request's origin to run snippets, and the
// request is about them.
func (s *Server) mayShare(r *http.Request) bool {
	return r.URL.Path == operation.SnippetPath && slices.Contains(s.service.Settings().Snippets.Origins, r.Header.Get("Origin"))
}

// share lets a page of another origin read the response, also that of an error. There are no cookies,
// so that the page cannot act as its user.
func (s *Server) share(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != operation.SnippetPath {
		return
	}
	w.Header().Add("Vary", "Origin")
	if s.mayShare(r) {
		w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
	}
}

// preflight replies to a browser's question of whether a page may send a request. It returns false for
// other requests.
func (s *Server) preflight(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" || !s.mayShare(r) {
		return false
	}
	w.Header().Set("Access-Control-Allow-Methods", "GET, POST")
	w.Header().Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type")
	w.Header().Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
