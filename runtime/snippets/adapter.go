package snippets

import (
	"context"
	_ "embed"
	"fmt"

	"gaol/runtime"
)

// Adapter connects a framework.
type Adapter struct {
	Name string // such as "directive"
	Code string // an ES module: see docs/snippets.md
}

//go:embed adapters/none.mjs
var noneCode string

//go:embed adapters/directive.mjs
var directiveCode string

// None reads the snippet's exports.
var None = Adapter{Name: "none", Code: noneCode}

// Directive reads the systems that createSystem of @directive-run/core makes.
var Directive = Adapter{Name: "directive", Code: directiveCode}

// checkAdapter loads the adapter in a sandbox, until that succeeds once: a broken adapter is the operator's mistake, not
// that of a snippet. This also warms up the zygote, so that the first snippet need not wait for it.
func (r *Runner) checkAdapter(ctx context.Context) error {
	if err := r.checking.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.checking.Release(1)
	if r.checked {
		return nil
	}
	code, err := guestProgram{Adapter: r.adapter.Code}.module("inspect")
	if err != nil {
		return err
	}
	err = r.sandboxes.use(ctx, func(rt *runtime.NodeRuntime) error {
		e, err := rt.Evaluate(ctx, code, runtime.EvaluateOptions{Module: true})
		if err != nil {
			return err
		}
		var ok bool
		if err := e.Decode(&ok); err != nil {
			return fmt.Errorf("adapter %s: %w", r.adapter.Name, err)
		}
		return nil
	})
	r.checked = err == nil
	return err
}
