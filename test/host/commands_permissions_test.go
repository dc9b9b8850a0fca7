package host

import (
	"strings"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

const folder = "/usr/libexec/gaol/commands"

func permissions(t *testing.T, text string) policy.Permissions {
	t.Helper()
	p, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Permissions for programs apply to commands, and others do not. tries is a program that prints
// how two commands end.
const tries = `
	import { spawnSync } from 'node:child_process';
	console.log(...['get-weather', 'with.input'].map(name => { const r = spawnSync(name, { encoding: 'utf8' }); return r.error?.code ?? r.status }))`

func TestCommandPermissions(t *testing.T) {
	harness.Require(t, runtime.FeatureCommands)
	mounted := runtime.Mount{Source: harness.HostTree(t, map[string]string{"x": "x"}), Target: "/data"}
	for _, tc := range []struct {
		name, permissions string
		o                 runtime.Options
		want              string
	}{
		{"default", `{}`, runtime.Options{}, "0 0"},
		{"no network", `{"network":"deny"}`, runtime.Options{}, "0 0"},
		{"no unix sockets, because of a mount", `{"network":"deny"}`, runtime.Options{Mounts: []runtime.Mount{mounted}}, "0 0"},
		{"network", `{"network":"allow"}`, runtime.Options{}, "0 0"},
		{"few files", `{"fs":{"default":"deny","rules":[{"mode":"allow","operations":["read","execute"],"paths":["/usr/**","/workspace/**"]}]}}`, runtime.Options{}, "0 0"},
		{"read-only", `{}`, runtime.Options{ReadOnlyRoot: true}, "0 0"},
		{"no PATH", `{"env":{"default":"allow","rules":[{"mode":"deny","patterns":["PATH"]}]}}`, runtime.Options{}, "ENOENT ENOENT"},
		{"no programs", `{"childProcess":"deny"}`, runtime.Options{}, "EPERM EPERM"},
		{"another program", `{"childProcess":{"default":"deny","rules":[{"mode":"allow","patterns":["/usr/bin/busybox"]}]}}`, runtime.Options{}, "EACCES EACCES"},
		{"one command", `{"childProcess":{"default":"deny","rules":[{"mode":"allow","patterns":["` + folder + `/get-weather"]}]}}`, runtime.Options{}, "0 EACCES"},
		{"all commands", `{"childProcess":{"default":"deny","rules":[{"mode":"allow","patterns":["` + folder + `/**"]}]}}`, runtime.Options{}, "0 0"},
	} {
		o := tc.o
		o.Permissions, o.Commands = permissions(t, tc.permissions), echo
		if o.Permissions.ChildProcess.Rules != nil && !harness.Needs(t, runtime.FeatureZygote) {
			continue // a new Node would have to be among the programs
		}
		rt := harness.CreateForking(t, o)
		res := harness.Run(t, rt, tries, runtime.RunOptions{})
		if got := strings.TrimSpace(string(res.Stdout)); got != tc.want {
			t.Errorf("%s: %q %s, want %q", tc.name, got, res.Stderr, tc.want)
		}
	}
}

// A run's own permissions apply, too. The first program of a run is not a child.
func TestCommandPermissionsOfRun(t *testing.T) {
	harness.Require(t, runtime.FeatureCommands)
	rt := harness.CreateForking(t, runtime.Options{Commands: echo})
	none := permissions(t, `{"childProcess":"deny"}`)
	if res := harness.Run(t, rt, tries, runtime.RunOptions{Permissions: none}); string(res.Stdout) != "EPERM EPERM\n" {
		t.Errorf("%q %s", res.Stdout, res.Stderr)
	}
	if got := harness.Output(t, rt, runtime.RunOptions{Permissions: none}, "get-weather", "a"); got != "get-weather [\"a\"] \"\"" {
		t.Errorf("%q", got)
	}
}
