package sandboxtools

import (
	"cmp"
	"context"
	"path"
	"time"

	"gaol/vfs"
)

// sandbox is a runtime with an id. Toolbox.mu guards the fields from calls to idle.
//
//	reserve ── publish ─┬─ acquire ── release ─┬─ startClose
//	                    └──────────────────────┘
type sandbox struct {
	toolbox *Toolbox
	id      string
	root    vfs.Path
	Sandbox

	calls    int         // in progress
	lastUsed time.Time   // end of the last call
	idle     *time.Timer // runs while no call is in progress

	commands context.Context // canceled when commands must stop
	stop     context.CancelFunc
}

// resolve returns a path of a call as an absolute path in the guest. It resolves ".."
// lexically, without regard to links; the parent of "/" is "/".
func (s *sandbox) resolve(place, p string) (string, error) {
	if !path.IsAbs(p) {
		p = path.Join(string(s.root), p)
	}
	clean, err := vfs.ParsePath(path.Clean(p))
	if err != nil {
		return "", &Error{Code: InvalidArgument, Place: place, Err: err}
	}
	return string(clean), nil
}

// reserve reserves the id of a new sandbox. The caller must call publish.
func (t *Toolbox) reserve(id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, exists := t.sandboxes[id]
	switch {
	case t.closing.Err() != nil:
		return errClosed()
	case exists:
		return refuse(Exists, "containerId", "sandbox %q exists", id)
	case len(t.sandboxes) >= t.o.MaxSandboxes:
		return refuse(Limit, "", "the limit of %d sandboxes is reached", t.o.MaxSandboxes)
	}
	t.sandboxes[id] = nil
	t.pending.Add(1)
	return nil
}

// publish makes a sandbox available to calls or, if it could not be created, releases its id.
func (t *Toolbox) publish(s *sandbox, failed error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.pending.Done()
	if failed != nil {
		delete(t.sandboxes, s.id)
	} else {
		t.sandboxes[s.id], s.lastUsed = s, time.Now()
		s.commands, s.stop = context.WithCancel(context.Background())
		s.idle = time.AfterFunc(t.o.IdleLimit, func() { t.expire(s) })
	}
	if t.closing.Err() == nil {
		return failed
	}
	if failed == nil { // Close skips sandboxes that are being created
		t.startClose(s)
	}
	return errClosed()
}

// acquire begins a call. The caller must call release.
func (t *Toolbox) acquire(id string) (*sandbox, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sandboxes[id]
	switch {
	case t.closing.Err() != nil:
		return nil, errClosed()
	case s == nil:
		return nil, refuse(NotFound, "containerId", "sandbox %q does not exist", id)
	}
	s.idle.Stop() // if it has fired, expire sees the call or the new lastUsed
	s.calls++
	t.pending.Add(1)
	return s, nil
}

// release ends a call.
func (t *Toolbox) release(s *sandbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.calls--
	if s.calls == 0 && t.sandboxes[s.id] == s {
		s.lastUsed = time.Now()
		s.idle.Reset(t.o.IdleLimit)
	}
	t.pending.Done()
}

// expire closes a sandbox that has been idle for too long.
func (t *Toolbox) expire(s *sandbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sandboxes[s.id] == s && s.calls == 0 && time.Since(s.lastUsed) >= t.o.IdleLimit {
		t.startClose(s)
	}
}

// startClose closes a sandbox in the background. It counts towards MaxSandboxes until it is closed. The channel
// receives the result.
//
// Preconditions: t.mu is held; t.sandboxes has s; Close does not wait for t.pending yet, or t.pending is not 0.
func (t *Toolbox) startClose(s *sandbox) <-chan error {
	t.sandboxes[s.id] = nil
	s.idle.Stop()
	done := make(chan error, 1)
	t.pending.Go(func() {
		s.stop()
		err := s.Close()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.err = cmp.Or(t.err, err)
		delete(t.sandboxes, s.id)
		done <- err
	})
	return done
}
