package mcpserver

import (
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/api"
)

// maxSessions bounds the sessions of one tenant. A new one replaces the one that has been unused
// for the longest time.
const maxSessions = 64

const sessionHeader = "Mcp-Session-Id"

// sessions records the use of a tenant's sessions.
type sessions struct {
	mu   sync.Mutex
	uses map[string]*use
}

// use is the use of one session.
type use struct {
	active int // requests
	last   time.Time
}

// serveSession serves a request of a protocol version that has sessions.
func (e *endpoint) serveSession(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(sessionHeader)
	if id == "" && r.Method == http.MethodPost && !e.makeRoom() {
		w.Header().Set("Retry-After", "10")
		api.WriteProblem(w, http.StatusTooManyRequests, "all sessions are in use")
		return
	}
	if e.live()[id] != nil { // others are not recorded: clients can invent any number
		defer e.sessions.begin(id)()
	}
	e.stateful.ServeHTTP(w, r)
}

// begin records a request in a session, until the returned function is called.
func (s *sessions) begin(id string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses == nil {
		s.uses = map[string]*use{}
	}
	u := s.uses[id]
	if u == nil {
		u = &use{}
		s.uses[id] = u
	}
	u.active++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u.active--
		u.last = time.Now()
	}
}

// live returns the tenant's sessions. Those of single requests have no id.
func (e *endpoint) live() map[string]*mcp.ServerSession {
	live := map[string]*mcp.ServerSession{}
	for s := range e.mcp.Sessions() {
		if s.ID() != "" {
			live[s.ID()] = s
		}
	}
	return live
}

// makeRoom closes a session if there are too many. It returns false if all are in use.
func (e *endpoint) makeRoom() bool {
	live := e.live()
	oldest := e.sessions.oldest(live)
	if len(live) < maxSessions {
		return true
	}
	if oldest == nil {
		return false
	}
	_ = oldest.Close() // it has no request
	return true
}

// oldest returns the session that has been unused for the longest time, nil if all are in use. It
// forgets sessions that have ended.
func (s *sessions) oldest(live map[string]*mcp.ServerSession) (found *mcp.ServerSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, u := range s.uses {
		if live[id] == nil && u.active == 0 {
			delete(s.uses, id)
		}
	}
	var since time.Time
	for id, session := range live {
		u := s.uses[id]
		if u == nil { // it has had no request after the first
			return session
		}
		if u.active == 0 && (found == nil || u.last.Before(since)) {
			found, since = session, u.last
		}
	}
	return found
}
