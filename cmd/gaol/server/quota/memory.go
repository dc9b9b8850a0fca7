package quota

import (
	"runtime/debug"
	"time"
)

// Go collects what large requests have held only when the heap has doubled, or two minutes after they have ended.
// So the server returns that memory to the system itself when it may be much, and not often: it scans the whole heap.
const (
	muchReleased = 64 << 20
	returnDelay  = 200 * time.Millisecond // handlers still refer to released memory
	returnPause  = 10 * time.Second
)

// released counts bytes that reservations held until now.
//
// Preconditions: s.mu is held.
func (s *Server) released(bytes int64) {
	if s.garbage += bytes; s.garbage <= muchReleased || s.returning {
		return
	}
	s.returning = true
	time.AfterFunc(returnDelay, func() {
		s.mu.Lock()
		s.garbage = 0
		s.mu.Unlock()
		debug.FreeOSMemory()
		time.AfterFunc(returnPause, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.returning = false
			s.released(0)
		})
	})
}
