package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime/requestjson"
)

func codeOf(err error) Code {
	e, _ := errors.AsType[*Error](err)
	if e == nil {
		return ""
	}
	return e.Code
}

// performed calls do as an operation of package operation does.
func performed(ctx context.Context, s *Service, t *tenant.Tenant, operation string, do func(context.Context) error) error {
	ctx, end, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return s.Convert(ctx, operation, t, do(ctx))
}

// A draining service lets accepted work continue and refuses new work. Work that is canceled by the service's end
// fails as interrupted.
func TestBeginWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, created := newService(t, nil)
		me := &tenant.Tenant{Name: "uid:1"}
		run := func(ctx context.Context) error {
			_, err := s.Run(ctx, &Call{Service: s, Tenant: me}, &requestjson.RunRequest{Tree: requestjson.Tree{Hostname: "h"}})
			return err
		}
		stop, stopNow := context.WithCancel(t.Context())
		err := performed(t.Context(), s, me, "outer", func(ctx context.Context) error {
			go func() { _ = s.Close(stop) }()
			synctest.Wait()
			if err := performed(ctx, s, me, "inner", run); codeOf(err) != Internal || len(*created) != 1 {
				t.Errorf("a part: %v, %d sandboxes", err, len(*created))
			}
			if _, err := s.Acquire(ctx, me, "no"); codeOf(err) != NotFound {
				t.Errorf("a sandbox for a part: %v", err)
			}
			if _, err := s.Acquire(t.Context(), me, "no"); codeOf(err) != Draining {
				t.Errorf("a sandbox: %v", err)
			}
			if err := performed(t.Context(), s, me, "other", run); codeOf(err) != Draining || len(*created) != 1 {
				t.Errorf("other work: %v, %d sandboxes", err, len(*created))
			}
			stopNow()
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if codeOf(err) != Stopped {
			t.Errorf("%v", err)
		}
	})
}
