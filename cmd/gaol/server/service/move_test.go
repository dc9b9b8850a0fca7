package service

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime/requestjson"
)

// newMovable adds a sandbox without a runtime to a service, whose use prevents that it moves.
func newMovable(t *testing.T) (*Service, *Sandbox) {
	t.Helper()
	s, _ := newService(t, func(o *settings.Settings) { o.DrainMs = 10_000 })
	sb := newRetaining(s, "uid:1")
	sb.ID, sb.account, sb.request, sb.expires = "sb-1", s.Account(sb.tenant()), &requestjson.SandboxRequest{}, time.Now().Add(time.Hour)
	sb.close, sb.idle = func() error { return nil }, time.AfterFunc(time.Hour, func() {})
	s.sandboxes[sb.ID] = sb
	return s, sb
}

// wantNoGift fails the test: the sandbox is in use.
func wantNoGift(t *testing.T) func(context.Context, *tenant.Tenant, *Moved) error {
	return func(context.Context, *tenant.Tenant, *Moved) error {
		t.Error("the sandbox was given to another machine")
		return nil
	}
}

// A request that has entered a sandbox keeps it there, and can use it while the move waits. New requests wait, and use it when the
// move has failed.
func TestEnterKeepsSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sb := newMovable(t)
		here, leave := s.Enter(t.Context(), sb.ID)
		if !here {
			t.Fatal("the sandbox is not here")
		}
		moved, second := make(chan error, 1), make(chan time.Duration, 1)
		begin := time.Now()
		go func() { moved <- s.Move(t.Context(), wantNoGift(t)) }()
		synctest.Wait()
		go func() {
			here, leave := s.Enter(t.Context(), sb.ID)
			defer leave()
			if !here {
				t.Error("the sandbox has gone")
			}
			second <- time.Since(begin)
		}()
		got, err := s.Acquire(t.Context(), sb.tenant(), sb.ID)
		if err != nil {
			t.Fatal(err)
		}
		leave()
		leave() // does nothing
		if _, err := s.Acquire(t.Context(), sb.tenant(), sb.ID); codeOf(err) != Unreachable {
			t.Errorf("a use that has not entered: %v", err)
		}
		if err := <-moved; codeOf(err) != Conflict {
			t.Errorf("the move: %v", err)
		}
		if waited := <-second; waited < 10*time.Second || waited > 11*time.Second {
			t.Errorf("another request waited for %v, want drainMs", waited)
		}
		got.Release()
		if sb.uses != 0 || sb.entered != 0 {
			t.Errorf("%d uses, %d requests have entered", sb.uses, sb.entered)
		}
	})
}

// A request does not wait longer than its client, or than maxMoveWait. Sandboxes that are not here are not waited for.
func TestEnterWaitsForLimitedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sb := newMovable(t)
		sb.moving = make(chan struct{})
		for limit, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: maxMoveWait} {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			begin := time.Now()
			here, leave := s.Enter(ctx, sb.ID)
			leave()
			cancel()
			if waited := time.Since(begin); here || waited != want {
				t.Errorf("here: %v after %v, want %v", here, waited, want)
			}
		}
		if here, _ := s.Enter(t.Context(), "sb-2"); here {
			t.Error("a sandbox that does not exist is here")
		}
		sb.moving = nil
	})
}

// A request that waits learns that the sandbox has been deleted.
func TestEnterDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sb := newMovable(t)
		sb.moving = make(chan struct{})
		go func() {
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			sb.remove()
			close(sb.moving)
		}()
		if here, _ := s.Enter(t.Context(), sb.ID); here {
			t.Error("the sandbox is here")
		}
	})
}

// Requests keep what another machine needs, and sandboxes stay that depend on this one.
func TestMovable(t *testing.T) {
	files := map[string]string{"/etc/conf": "a", "/workspace/f": "b", "/workspacer": "c", "/home/node/f": "d", "/srv/f": "e"}
	for name, test := range map[string]struct {
		session, detached bool
		request           requestjson.SandboxRequest
		want              map[string]string // files; nil: it stays
	}{
		"files":         {request: requestjson.SandboxRequest{Tree: requestjson.Tree{Files: files}}, want: map[string]string{"/etc/conf": "a", "/workspacer": "c", "/srv/f": "e"}},
		"cwd":           {request: requestjson.SandboxRequest{Cwd: "/srv", Tree: requestjson.Tree{Files: files}}, want: map[string]string{"/etc/conf": "a", "/workspacer": "c"}},
		"packages":      {request: requestjson.SandboxRequest{Tree: requestjson.Tree{NodeModules: requestjson.NodeModules{HostPath: "snapshot:a"}}}, want: map[string]string{}},
		"detached":      {session: true, detached: true, want: map[string]string{}},
		"session":       {session: true},
		"mounts":        {request: requestjson.SandboxRequest{Tree: requestjson.Tree{Mounts: []requestjson.Mount{{}}}}},
		"host ports":    {request: requestjson.SandboxRequest{Tree: requestjson.Tree{HostPorts: []int{80}}}},
		"host packages": {request: requestjson.SandboxRequest{Tree: requestjson.Tree{NodeModules: requestjson.NodeModules{HostPath: "/srv"}}}},
		"large files":   {request: requestjson.SandboxRequest{Tree: requestjson.Tree{Files: map[string]string{"/etc/large": strings.Repeat("x", maxMoved)}}}},
		"large own":     {request: requestjson.SandboxRequest{Tree: requestjson.Tree{Files: map[string]string{"/workspace/large": strings.Repeat("x", maxMoved)}}}, want: map[string]string{}},
	} {
		c := &Call{Detached: test.detached}
		if test.session {
			c.Session = &Session{}
		}
		test.request.Snapshot = "base"
		before := len(test.request.Files)
		got := movable(c, &test.request)
		if (got != nil) != (test.want != nil) {
			t.Errorf("%s: %+v", name, got)
		} else if got != nil && (got.Snapshot != "" || len(test.request.Files) != before || len(got.Files)+len(test.want) > 0 && !cmp.Equal(got.Files, test.want)) {
			t.Errorf("%s: %+v, want files %v", name, got, test.want)
		}
	}
}
