package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gaol/rootfs"
	"gaol/runtime"
	"gaol/test/harness"
)

// echo are commands that print their calls.
var echo = map[string]runtime.HostCommand{
	"get-weather": {Run: show},
	"with.input":  {Run: show, Stdin: true},
	"fail": {Run: func(context.Context, runtime.CommandCall) (runtime.CommandResult, error) {
		return runtime.CommandResult{}, errors.New("no such city")
	}},
	"exit3": {Run: func(context.Context, runtime.CommandCall) (runtime.CommandResult, error) {
		return runtime.CommandResult{Stdout: []byte("out\n"), Stderr: []byte("err\n"), ExitCode: 3}, nil
	}},
}

func show(_ context.Context, c runtime.CommandCall) (runtime.CommandResult, error) {
	return runtime.CommandResult{Stdout: fmt.Appendf(nil, "%s %q %q\n", c.Name, c.Args, c.Stdin)}, nil
}

// calls are programs that call commands, and their output.
var calls = []struct{ name, code, want string }{
	{"execFileSync", `import { execFileSync as run } from 'node:child_process'; console.log(String(run('get-weather', ['--json', '{"city":"Øl"}', ''])).trim())`, `get-weather ["--json" "{\"city\":\"Øl\"}" ""] ""`},
	{"no arguments", `import { execFileSync as run } from 'node:child_process'; console.log(String(run('get-weather')).trim())`, `get-weather [] ""`},
	{"an open input", `import { execFile } from 'node:child_process'; execFile('get-weather', ['x'], (err, out) => console.log(err, out.trim()))`, `null get-weather ["x"] ""`},
	{"input", `import { execFileSync as run } from 'node:child_process'; console.log(String(run('with.input', ['a'], { input: 'b\nc' })).trim())`, `with.input ["a"] "b\nc"`},
	{"a shell", `import { execSync } from 'node:child_process'; console.log(String(execSync('echo hi | with.input "a b" | tr a-z A-Z && get-weather; exit3 2>&1 || echo $?')).trim())`, "WITH.INPUT [\"A B\"] \"HI\\N\"\nget-weather [] \"\"\nout\nerr\n3"},
	{"a function that fails", `import { spawnSync } from 'node:child_process'; const r = spawnSync('fail', { encoding: 'utf8' }); console.log(r.status, r.stdout, r.stderr.trim())`, "1  fail: no such city"},
	{"another PATH", `import { execFileSync as run } from 'node:child_process'; console.log(String(run('/usr/libexec/gaol/commands/get-weather', { env: {} })).trim())`, `get-weather [] ""`},
	{"another program's name", `import { execFileSync as run } from 'node:child_process'; console.log(String(run('get-weather', { argv0: 'fail' })).trim())`, `get-weather [] ""`},
}

func TestCommands(t *testing.T) {
	harness.Require(t, runtime.FeatureCommands)
	for _, l := range harness.Launchers {
		rt := harness.Create(t, runtime.Options{Launcher: l, Commands: echo})
		for n, tc := range calls {
			if testing.Short() && l != harness.Launchers[0] && n > 2 {
				continue
			}
			res := harness.Run(t, rt, tc.code, runtime.RunOptions{})
			if got := strings.TrimSpace(string(res.Stdout)); got != tc.want || res.ExitCode != 0 {
				t.Errorf("%v: %s: got %q %s, want %q", l, tc.name, got, res.Stderr, tc.want)
			}
		}
	}
}

// Parked runs, and images without Node.
func TestCommandImages(t *testing.T) {
	harness.Require(t, runtime.FeatureCommands)
	if harness.Needs(t, runtime.FeaturePark) {
		rt := harness.CreateParked(t, runtime.Options{Commands: echo})
		for range 2 { // the second is not the parked one
			if res := harness.Run(t, rt, calls[0].code, runtime.RunOptions{}); strings.TrimSpace(string(res.Stdout)) != calls[0].want {
				t.Errorf("parked: %q %s", res.Stdout, res.Stderr)
			}
		}
	}
	store := harness.ImportImage(t, harness.BusyboxImage(t), rootfs.ImportOptions{})
	o := runtime.Options{Store: store, Image: "app", Launcher: runtime.LauncherExec, Commands: echo}
	rt := harness.Create(t, o)
	if got := harness.Output(t, rt, runtime.RunOptions{}, "sh", "-c", "get-weather a"); got != `get-weather ["a"] ""` {
		t.Errorf("imported: %q", got)
	}
}
