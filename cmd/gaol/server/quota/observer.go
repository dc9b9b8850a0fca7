package quota

import (
	"errors"
	"time"
)

// Observer has functions that a server calls, for metrics. Fields may be nil.
type Observer struct {
	Refused func(*Exceeded)     // a quota was exceeded
	Queued  func(time.Duration) // a run has waited for its turn, or until it gave up
}

// Observe sets the observer. It must be called before the server is used.
func (s *Server) Observe(o Observer) { s.observer = o }

func (s *Server) observe(err error) {
	if e, ok := errors.AsType[*Exceeded](err); ok && s.observer.Refused != nil {
		s.observer.Refused(e)
	}
}

func (o *Observer) queued(d time.Duration) {
	if o.Queued != nil {
		o.Queued(d)
	}
}
