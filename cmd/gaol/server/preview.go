package server

import (
	"net/http"
	"strings"

	"gaol/cmd/gaol/server/api"
)

// preview serves a request to a sandbox's own host name. It returns false for all others. The
// unix socket has none: there, a host name has no meaning.
func (s *Server) preview(w http.ResponseWriter, r *http.Request) bool {
	return !connOf(r).isUnix() && api.ServePreview(s.service, w, r, s.isToken)
}

// isToken reports whether a header Authorization has a token of this server.
func (s *Server) isToken(header string) bool {
	tokens := s.tokens.Load()
	_, secret, _ := strings.Cut(strings.TrimSpace(header), " ")
	return tokens != nil && tokens.Find(strings.TrimSpace(secret)) != nil
}
