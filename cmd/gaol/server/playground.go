package server

import (
	"net/http"

	"gaol/cmd/gaol/playground"
	"gaol/cmd/gaol/server/api"
)

// addPlayground adds the page for people. The settings can turn it off at any time.
func (s *Server) addPlayground(mux *http.ServeMux) {
	serve := func(w http.ResponseWriter, r *http.Request) {
		set := s.service.Settings().Playground
		if set.Off {
			api.WriteProblem(w, http.StatusNotFound, "")
			return
		}
		playground.Serve(w, r, playground.Options{FrameAncestors: set.FrameAncestors})
	}
	mux.HandleFunc("GET /{$}", serve)
	for _, name := range playground.Files {
		if name != playground.Index {
			mux.HandleFunc("GET /"+name, serve)
		}
	}
}

// isPlayground reports whether a request reads the page, which is the same for all callers. It needs
// neither a tenant nor an allowed origin: links on other sites lead to it, and other sites load its
// script for embedding. What the page does needs both.
func (s *Server) isPlayground(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && playground.Has(r.URL.Path) && !s.service.Settings().Playground.Off
}
