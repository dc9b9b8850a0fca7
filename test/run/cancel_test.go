package run

import (
	"context"
	"errors"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// errWhy is the cause of canceled contexts.
var errWhy = errors.New("nobody needs it any more")

// waiting prints a line and waits for a minute.
const waiting = `console.log('up'); await new Promise(r => setTimeout(r, 60000))`

// A canceled run returns an error with the cause, and its result so far.
func TestCanceledRuns(t *testing.T) {
	for what, start := range map[string]func(context.Context, *runtime.NodeRuntime, func([]byte)) (*runtime.Result, error){
		"Run": func(ctx context.Context, rt *runtime.NodeRuntime, up func([]byte)) (*runtime.Result, error) {
			return rt.Run(ctx, `__return(7);`+waiting, runtime.RunOptions{OnStdout: up})
		},
		"Exec": func(ctx context.Context, rt *runtime.NodeRuntime, up func([]byte)) (*runtime.Result, error) {
			return rt.Exec(ctx, waiting, runtime.RunOptions{OnStdout: up})
		},
		"Command": func(ctx context.Context, rt *runtime.NodeRuntime, up func([]byte)) (*runtime.Result, error) {
			return rt.Command(ctx, "sh", []string{"-c", "echo up; sleep 60"}, runtime.RunOptions{OnStdout: up})
		},
	} {
		for _, tc := range []struct {
			name string
			end  func(rt *runtime.NodeRuntime, cancel context.CancelCauseFunc)
			want []error
		}{
			{"its context", func(_ *runtime.NodeRuntime, cancel context.CancelCauseFunc) { cancel(errWhy) }, []error{context.Canceled, errWhy}},
			{"its runtime", func(rt *runtime.NodeRuntime, _ context.CancelCauseFunc) { go rt.Close() }, []error{runtime.ErrClosed}},
			{"its caller", func(rt *runtime.NodeRuntime, _ context.CancelCauseFunc) { _ = rt.Kill(rt.Processes()[0].PID) }, nil},
		} {
			rt := harness.CreateExact(t, harness.Options(runtime.Options{}))
			ctx, cancel := context.WithCancelCause(t.Context())
			res, err := start(ctx, rt, func([]byte) { tc.end(rt, cancel) })
			cancel(nil)
			if res == nil || res.Cause != runtime.CauseCanceled || string(res.Stdout) != "up\n" || what == "Run" && string(res.Value) != "7" && !(harness.InGVisor() && tc.name == "its runtime") { // Close kills gVisor and its output
				t.Errorf("%s, ended by %s: %+v", what, tc.name, res)
			}
			if len(tc.want) == 0 && err != nil {
				t.Errorf("%s, ended by %s: %v", what, tc.name, err)
			}
			for _, want := range tc.want {
				if !errors.Is(err, want) {
					t.Errorf("%s, ended by %s: %v, want %v", what, tc.name, err, want)
				}
			}
		}
	}
}

// A run's own timeout is a result. A deadline of the caller's context is an error.
func TestCanceledByDeadline(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	res, err := rt.Run(t.Context(), waiting, runtime.RunOptions{Timeout: 500 * time.Millisecond})
	if err != nil || res.Cause != runtime.CauseTimeout {
		t.Errorf("its own time: %+v, %v", res, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	res, err = rt.Run(ctx, waiting, runtime.RunOptions{})
	if !errors.Is(err, context.DeadlineExceeded) || res == nil || res.Cause != runtime.CauseCanceled {
		t.Errorf("its context's: %+v, %v", res, err)
	}
}

// A canceled Wait leaves the process running. Closing the runtime ends it.
func TestCanceledProcess(t *testing.T) {
	rt := harness.CreateExact(t, harness.Options(runtime.Options{}))
	p := spawn(t, rt, runtime.SpawnOptions{}, "sleep", "60")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errWhy)
	if res, err := p.Wait(ctx); res != nil || !errors.Is(err, context.Canceled) || !errors.Is(err, errWhy) {
		t.Errorf("a canceled Wait: %+v, %v", res, err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if res, err := p.Wait(t.Context()); !errors.Is(err, runtime.ErrClosed) || res == nil || res.Cause != runtime.CauseCanceled {
		t.Errorf("a closed runtime's: %+v, %v", res, err)
	}
}
