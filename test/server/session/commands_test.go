package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/runtime/client"
)

// testCommands: programs of a sandbox call its client, also commands that it adds meanwhile.
func testCommands(t *testing.T, c *client.Client) {
	show := func(_ context.Context, call runtime.CommandCall) (runtime.CommandResult, error) {
		return runtime.CommandResult{Stdout: fmt.Appendf(nil, "%s %q %q\n", call.Name, call.Args, call.Stdin), ExitCode: len(call.Args)}, nil
	}
	fail := func(context.Context, runtime.CommandCall) (runtime.CommandResult, error) {
		return runtime.CommandResult{}, &runtime.CallError{Code: "ENOENT", Message: "no such city"}
	}
	sb := createIn(t, c, client.CreateOptions{Commands: map[string]runtime.HostCommand{}})
	added := runtime.NewFunction0("adds commands", func(ctx context.Context) (any, error) {
		return nil, sb.AddCommands(ctx, map[string]runtime.HostCommand{"get-weather": {Run: show}, "with-input": {Run: show, Stdin: true}, "fail": {Run: fail}})
	})
	e, err := sb.Evaluate(soon(t), `
		import { spawnSync } from 'node:child_process';
		const run = (...args) => { const r = spawnSync(...args); return [r.status, String(r.stdout), String(r.stderr), r.error?.code] };
		const before = run('get-weather')[3];
		add();
		[before, run('get-weather', ['--json', '{}']), run('with-input', { input: 'ü' }), run('fail')]`, runtime.EvaluateOptions{Globals: map[string]any{"add": added}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `["ENOENT",[2,"get-weather [\"--json\" \"{}\"] \"\"\n","",null],[0,"with-input [] \"ü\"\n","",null],[1,"","fail: no such city\n",null]]`
	if string(e.Value) != want || len(e.Calls) != 4 || e.Calls[1].Name != "get-weather" {
		t.Errorf("%s %v %+v\nwant %s", e.Value, e.Error, e.Calls, want)
	}
	testCommandErrors(t, c, runtime.HostCommand{Run: show})
}

func testCommandErrors(t *testing.T, c *client.Client, command runtime.HostCommand) {
	for name, o := range map[string]client.CreateOptions{
		"a name":   {Commands: map[string]runtime.HostCommand{"Get Weather": command}},
		"a path":   {Commands: map[string]runtime.HostCommand{"../x": command}},
		"detached": {Commands: map[string]runtime.HostCommand{"x": command}, Detached: true},
	} {
		_, err := c.Create(t.Context(), o)
		if e, ok := errors.AsType[*client.Error](err); !ok || e.Code != "invalid" {
			t.Errorf("%s: %v", name, err)
		}
	}
	without := createIn(t, c, client.CreateOptions{})
	err := without.AddCommands(t.Context(), map[string]runtime.HostCommand{"x": command})
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Code != "invalid" || !strings.Contains(e.Error(), "Commands") {
		t.Errorf("without commands: %v", err)
	}
}
