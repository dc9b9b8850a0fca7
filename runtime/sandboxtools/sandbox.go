package sandboxtools

import (
	"cmp"
	"context"
	"path"
	"time"

	"gaol/runtime"
	"gaol/vfs"
	"gaol/vfs/hostfs"
)

// state is a step in the life of a sandbox:
//
//	creating ── live ── stopped ── closing
//	    └────────┴───────────────── ┘
type state int

const (
	creating state = iota // only its id is reserved
	live                  // all tools work
	stopped               // only the tools for files work
	closing               // it counts towards MaxSandboxes until it is closed
)

// sandbox is a runtime with an id. Toolbox.mu guards the fields from state to idle.
type sandbox struct {
	toolbox *Toolbox
	id      string
	root    vfs.Path
	rt      *runtime.NodeRuntime

	release func() // of Options.Prepare

	state    state
	calls    int         // in progress
	lastUsed time.Time   // end of the last call
	idle     *time.Timer // runs while no call is in progress

	commands context.Context // canceled when commands must stop
	stop     context.CancelFunc
}

func (s *sandbox) files() *hostfs.FS { return s.rt.FS() }

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

// reserve reserves the id of a new sandbox. The caller must call publish or unreserve.
func (t *Toolbox) reserve(s *sandbox) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closing.Err() != nil:
		return errClosed()
	case t.sandboxes[s.id] != nil:
		return refuse(Exists, "containerId", "sandbox %q exists", s.id)
	case len(t.sandboxes) >= t.o.MaxSandboxes:
		return refuse(Limit, "", "the limit of %d sandboxes is reached", t.o.MaxSandboxes)
	}
	t.sandboxes[s.id] = s
	t.pending.Add(1)
	return nil
}

// unreserve releases an id that was reserved.
func (t *Toolbox) unreserve(s *sandbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sandboxes, s.id)
	t.pending.Done()
}

// publish makes a sandbox available to calls. The sandbox owns rt from now on.
func (t *Toolbox) publish(s *sandbox, rt *runtime.NodeRuntime) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.pending.Done()
	s.rt, s.state, s.lastUsed = rt, live, time.Now()
	s.commands, s.stop = context.WithCancel(context.Background())
	s.idle = time.AfterFunc(t.o.IdleLimit, func() { t.expire(s) })
	if t.closing.Err() != nil { // Close skips sandboxes that are being created
		t.startClose(s)
		return errClosed()
	}
	return nil
}

// find returns a sandbox that is live or stopped.
//
// Preconditions: t.mu is held.
func (t *Toolbox) find(id string) (*sandbox, error) {
	s := t.sandboxes[id]
	switch {
	case t.closing.Err() != nil:
		return nil, errClosed()
	case s == nil || s.state != live && s.state != stopped:
		return nil, refuse(NotFound, "containerId", "sandbox %q does not exist", id)
	}
	return s, nil
}

// acquire begins a call. The caller must call release.
func (t *Toolbox) acquire(id string) (*sandbox, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, err := t.find(id)
	if err != nil {
		return nil, err
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
	if s.calls == 0 && s.state != closing {
		s.lastUsed = time.Now()
		s.idle.Reset(t.o.IdleLimit)
	}
	t.pending.Done()
}

// expire closes a sandbox that has been idle for too long.
func (t *Toolbox) expire(s *sandbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing.Err() == nil && s.calls == 0 && time.Since(s.lastUsed) >= t.o.IdleLimit {
		t.startClose(s)
	}
}

// startClose closes a sandbox in the background, unless it is being created or closed. The
// channel receives the result.
//
// Preconditions: t.mu is held; Close does not wait for t.pending yet, or t.pending is not 0.
func (t *Toolbox) startClose(s *sandbox) <-chan error {
	if s.state == creating || s.state == closing {
		return nil
	}
	s.state = closing
	s.idle.Stop()
	done := make(chan error, 1)
	t.pending.Go(func() {
		s.stop()
		err := s.rt.Close()
		s.release()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.err = cmp.Or(t.err, err)
		delete(t.sandboxes, s.id)
		done <- err
	})
	return done
}
