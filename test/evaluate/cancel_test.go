package evaluate

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// A canceled evaluation reports the cause of its context, and its Evaluation so far.
func TestCanceledEvaluation(t *testing.T) {
	errWhy := errors.New("the result is not needed")
	const waiting = `console.log('up'); await new Promise(r => setTimeout(r, 60000))`
	rt := harness.Create(t, runtime.Options{})
	c, err := rt.NewContext(t.Context(), runtime.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for what, evaluate := range map[string]func(context.Context, string, runtime.EvaluateOptions) (*runtime.Evaluation, error){
		"Evaluate": rt.Evaluate, "a context's": c.Evaluate,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		e, err := evaluate(ctx, waiting, runtime.EvaluateOptions{OnLog: func(runtime.Log) { cancel(errWhy) }})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errWhy) || e == nil || fmt.Sprint(e.Error) != "CanceledError: the code was stopped by its host" || len(e.Logs) != 1 {
			t.Errorf("%s: %+v, %v", what, e, err)
		}
	}
	want(t, c, `1`, `1`)
}
