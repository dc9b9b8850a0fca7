package sandboxtools

import (
	"context"
	"path"
	"time"

	"gaol/runtime"
	"gaol/vfs"
	"gaol/vfs/hostfs"
)

// state is where a sandbox is in its life:
//
//	making ── live ── stopped ── ending
//	   └────────┴────────────────── ┘
type state int

const (
	making  state = iota // its id is taken, and nothing else is there
	live                 // it can be used
	stopped              // its files can
	ending               // until it is gone; its place is taken as long
)

// sandbox is one runtime. Its toolbox's mu guards what is below rt.
type sandbox struct {
	id   string
	root vfs.Path
	rt   *runtime.NodeRuntime

	state state
	calls int         // under way
	used  time.Time   // the last one's end
	idle  *time.Timer // runs while there is no call

	commands context.Context // done once it is to run nothing more
	stop     context.CancelFunc
}

func newSandbox(id string, root vfs.Path) *sandbox {
	s := &sandbox{id: id, root: root}
	s.commands, s.stop = context.WithCancel(context.Background())
	return s
}

// files are the guest's.
func (s *sandbox) files() *hostfs.FS { return s.rt.FS() }

// path gives a path of a call as the guest's tree has it. ".." goes up by the text alone,
// whatever links are there, and from "/" to "/".
func (s *sandbox) path(place, p string) (string, error) {
	if !path.IsAbs(p) {
		p = path.Join(string(s.root), p)
	}
	clean, err := vfs.ParsePath(path.Clean(p))
	if err != nil {
		return "", &Error{Code: InvalidArgument, Place: place, Err: err}
	}
	return string(clean), nil
}

// reserve takes an id for a new sandbox. The caller publishes or drops it.
func (t *Toolbox) reserve(s *sandbox) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return &Error{Code: Closed, Err: errClosed}
	case t.sandboxes[s.id] != nil:
		return refuse(Exists, "containerId", "there is a sandbox %q", s.id)
	case len(t.sandboxes) >= t.o.MaxSandboxes:
		return refuse(Limit, "", "there are %d sandboxes, which is the limit", t.o.MaxSandboxes)
	}
	t.sandboxes[s.id] = s
	t.calls.Add(1)
	return nil
}

// drop gives up an id that was reserved.
func (t *Toolbox) drop(s *sandbox) {
	s.stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sandboxes, s.id)
	t.calls.Done()
}

// publish has a sandbox be used. It owns rt from now on.
func (t *Toolbox) publish(s *sandbox, rt *runtime.NodeRuntime) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.calls.Done()
	s.rt, s.state, s.used = rt, live, time.Now()
	s.idle = time.AfterFunc(t.o.IdleLimit, func() { t.expire(s) })
	if t.closed { // and Close has left it alone
		t.startEnd(s)
		return &Error{Code: Closed, Err: errClosed}
	}
	return nil
}

// find gives a sandbox that can be used.
//
// Preconditions: t.mu is held.
func (t *Toolbox) find(id string) (*sandbox, error) {
	s := t.sandboxes[id]
	switch {
	case t.closed:
		return nil, &Error{Code: Closed, Err: errClosed}
	case s == nil || s.state != live && s.state != stopped:
		return nil, refuse(NotFound, "containerId", "there is no sandbox %q", id)
	}
	return s, nil
}

// enter begins a call.
func (t *Toolbox) enter(id string) (*sandbox, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, err := t.find(id)
	if err != nil {
		return nil, err
	}
	s.idle.Stop() // if it has fired, expire will see the call, or its end
	s.calls++
	t.calls.Add(1)
	return s, nil
}

// leave ends a call.
func (t *Toolbox) leave(s *sandbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.calls--
	if s.calls == 0 && s.state != ending {
		s.used = time.Now()
		s.idle.Reset(t.o.IdleLimit)
	}
	t.calls.Done()
}

// expire ends a sandbox that nobody has used.
func (t *Toolbox) expire(s *sandbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed && s.calls == 0 && time.Since(s.used) >= t.o.IdleLimit {
		t.startEnd(s)
	}
}

// startEnd has a sandbox come to its end. done is closed then; it is nil where that is
// not for the caller to do.
//
// Preconditions: t.mu is held; t.calls is not waited for yet, or not at 0.
func (t *Toolbox) startEnd(s *sandbox) (done chan struct{}) {
	if s.state == making || s.state == ending {
		return nil
	}
	s.state = ending
	s.idle.Stop()
	t.calls.Add(1)
	done = make(chan struct{})
	go func() {
		defer close(done)
		t.end(s)
	}()
	return done
}

func (t *Toolbox) end(s *sandbox) {
	s.stop()
	err := s.rt.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
	delete(t.sandboxes, s.id)
	t.calls.Done()
}
