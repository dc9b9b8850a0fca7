package service

import (
	"cmp"
	"time"
)

// times returns how long a sandbox lives without use, and at most.
func (s *Service) times(r SandboxRequest) (idle, lifetime time.Duration, err error) {
	set := s.settings.Load()
	if idle, err = bounded("idleTimeoutMs", r.IdleTimeoutMs, set.IdleTimeoutMs); err != nil {
		return 0, 0, err
	}
	lifetime, err = bounded("lifetimeMs", r.LifetimeMs, set.LifetimeMs)
	return idle, lifetime, err
}

// bounded returns a time that a request asks for, which must not exceed the server's; zero is the
// server's.
func bounded(name string, asked, most int64) (time.Duration, error) {
	if asked > most {
		return 0, refuse(Invalid, "%s: %d is more than the server's %d", name, asked, most)
	}
	return milliseconds(cmp.Or(asked, most)), nil
}
