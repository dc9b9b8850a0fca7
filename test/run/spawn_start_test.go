package run

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

func TestSpawnRefuses(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for _, tc := range []struct {
		name string
		args []string
		o    runtime.SpawnOptions
		want error
	}{
		{"/no/such", nil, runtime.SpawnOptions{}, fs.ErrNotExist},
		{"/etc/passwd", nil, runtime.SpawnOptions{}, fs.ErrPermission},
		{"true", nil, runtime.SpawnOptions{Cwd: "/no/such"}, fs.ErrNotExist},
		{"", nil, runtime.SpawnOptions{}, nil},
		{"true", []string{"\x00"}, runtime.SpawnOptions{}, nil},
		{"true", nil, runtime.SpawnOptions{Args: []string{"x"}}, nil},
		{"true", nil, runtime.SpawnOptions{Timeout: -1}, nil},
		{"true", nil, runtime.SpawnOptions{Terminal: &runtime.Terminal{Rows: 1}}, nil},
		{"true", nil, runtime.SpawnOptions{Terminal: &runtime.Terminal{Term: "a b"}}, nil},
		{"true", nil, runtime.SpawnOptions{Terminal: &runtime.Terminal{Term: strings.Repeat("x", 65)}}, nil},
		{"true", nil, runtime.SpawnOptions{Permissions: policy.Permissions{Network: policy.Scope{Default: policy.Allow}}}, nil},
		{"true", nil, runtime.SpawnOptions{Timeout: time.Nanosecond}, context.DeadlineExceeded},
	} {
		p, err := rt.Spawn(t.Context(), tc.name, tc.args, tc.o)
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.HasPrefix(err.Error(), "gaol: spawn: ") {
			t.Errorf("%q %+v: %v, %v", tc.name, tc.o, p, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrNoProgress)
	if _, err := rt.Spawn(ctx, "true", nil, runtime.SpawnOptions{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("canceled: %v", err)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	if _, err := rt.SpawnCode(t.Context(), "", runtime.SpawnOptions{}); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// The context of Spawn bounds only the start, at whatever moment it is canceled.
func TestSpawnCanceledInTheMiddle(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	started, canceled := 0, 0
	for i := range 60 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(i)*200*time.Microsecond, cancel)
		p, err := rt.Spawn(ctx, "sleep", []string{"100"}, runtime.SpawnOptions{})
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			canceled++
			cancel()
			continue
		}
		started++
		cancel()
		time.Sleep(time.Millisecond)
		select {
		case <-p.Done():
			t.Errorf("a context that has done its work ended %d", i)
		default:
		}
		p.Kill()
		wait(t, p)
	}
	t.Logf("%d started, %d canceled", started, canceled)
	if canceled == 0 {
		t.Error("none was canceled: this test proves nothing")
	}
	if left := rt.Processes(); len(left) > 0 {
		t.Errorf("%+v", left)
	}
}

// Close ends spawned processes, and starting ones.
func TestSpawnAndClose(t *testing.T) {
	for i := range 8 {
		rt := harness.Create(t, runtime.Options{})
		up := spawn(t, rt, runtime.SpawnOptions{Terminal: []*runtime.Terminal{nil, {}}[i%2]}, "sh", "-c", "sleep 100 & sleep 100")
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for {
					p, err := rt.Spawn(t.Context(), "cat", nil, runtime.SpawnOptions{})
					if errors.Is(err, runtime.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					p.Kill()
				}
			})
		}
		time.Sleep(time.Duration(i) * 5 * time.Millisecond)
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
		select {
		case <-up.Done():
			if res := wait(t, up); res.Cause != runtime.CauseCanceled {
				t.Errorf("%+v", res)
			}
		default:
			t.Error("Close returned before its processes had ended")
		}
		all.Wait()
	}
}
