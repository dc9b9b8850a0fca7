package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gaol/policy"
	"gaol/runtime"
)

// callTimeout limits the time of one call of a plugin.
const callTimeout = 2 * time.Second

// plugin is one sandbox with one process, which keeps the plugin's state between calls.
type plugin struct {
	name     string
	rt       *runtime.NodeRuntime
	context  *runtime.Context
	disabled string // the reason; empty while the plugin is enabled
}

func load(ctx context.Context, name, code string, o runtime.Options) (_ *plugin, err error) {
	o.Permissions = policy.Strict() // no files, no network, no processes
	o.Limits.Memory = 128 << 20
	p := &plugin{name: name}
	if p.rt, err = runtime.Create(ctx, o); err != nil {
		return nil, err
	}
	visits := runtime.NewFunction("counts a customer's visits", func(_ context.Context, customer string) (int, error) {
		return map[string]int{"ada": 12}[customer], nil
	})
	p.context, err = p.rt.NewContext(ctx, runtime.ContextOptions{Globals: map[string]any{"shop": map[string]any{"visits": visits}}})
	if err != nil {
		return nil, errors.Join(err, p.rt.Close())
	}
	e, err := p.context.Evaluate(ctx, code, runtime.EvaluateOptions{Timeout: callTimeout})
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	if e.Error != nil {
		p.disabled = e.Error.Error()
	}
	return p, nil
}

// handle calls the plugin's onOrder and describes the outcome. A plugin that fails is disabled;
// only failures of gaol itself are errors.
func (p *plugin) handle(ctx context.Context, o order) (string, error) {
	if p.disabled != "" {
		return "disabled", nil
	}
	e, err := p.context.Evaluate(ctx, "onOrder(order)", runtime.EvaluateOptions{
		Globals: map[string]any{"order": o},
		Timeout: callTimeout,
	})
	if err != nil {
		return "", err
	}
	if e.Error != nil {
		p.disabled = e.Error.Error()
		return "disabled after " + p.disabled, nil
	}
	// The value comes from the plugin. Check it like any other request.
	var discount float64
	if err := json.Unmarshal(e.Value, &discount); err != nil || discount < 0 || discount > o.Total/2 {
		return fmt.Sprintf("ignored the discount %s", e.Value), nil
	}
	return fmt.Sprintf("discount %g", discount), nil
}

// close removes the sandbox and everything in it.
func (p *plugin) close() error { return p.rt.Close() }
