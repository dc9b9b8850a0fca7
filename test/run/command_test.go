package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

func TestCommand(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Env: map[string]string{"GREETING": "hi"}})
	for _, tc := range []struct {
		name   string
		args   []string
		opts   runtime.RunOptions
		stdout string
		code   int
	}{
		{"sh", []string{"-c", "echo $GREETING; exit 5"}, runtime.RunOptions{}, "hi\n", 5},
		{"echo", []string{"$HOME", "*", "a b"}, runtime.RunOptions{}, "$HOME * a b\n", 0}, // no shell expands them
		{"/bin/cat", nil, runtime.RunOptions{Stdin: strings.NewReader("through")}, "through", 0},
		{"pwd", nil, runtime.RunOptions{Cwd: "/tmp"}, "/tmp\n", 0},
		{"node", []string{"-p", "process.argv.length"}, runtime.RunOptions{}, "1\n", 0},
	} {
		res, err := rt.Command(t.Context(), tc.name, tc.args, tc.opts)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if string(res.Stdout) != tc.stdout || res.ExitCode != tc.code || res.Value != nil {
			t.Errorf("%s: stdout %q, exit code %d, stderr %s", tc.name, res.Stdout, res.ExitCode, res.Stderr)
		}
	}
}

func TestCommandErrors(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for name, want := range map[string]error{"nosuch": fs.ErrNotExist, "/bin/nosuch": fs.ErrNotExist, "/etc/passwd": fs.ErrPermission, "/": fs.ErrPermission} {
		if _, err := rt.Command(t.Context(), name, nil, runtime.RunOptions{}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	_, err := rt.Run(t.Context(), "1", runtime.RunOptions{Cwd: "/nosuch"})
	if err == nil || !strings.Contains(err.Error(), "/nosuch") {
		t.Errorf("a missing working directory: %v", err)
	}
}

// npm installs a package from a tarball and runs its lifecycle script.
func TestNpmInstall(t *testing.T) {
	tier.Soak(t)
	rt := harness.Create(t, runtime.Options{})
	harness.Run(t, rt, `
		import fs from 'node:fs';
		fs.mkdirSync('dep');
		fs.writeFileSync('dep/package.json', JSON.stringify({ name: 'dep', version: '1.2.3', main: 'main.js', bin: 'cli.js',
			scripts: { postinstall: 'node -e "require(\'fs\').writeFileSync(\'made\', process.env.npm_lifecycle_event)"' } }));
		fs.writeFileSync('dep/main.js', 'module.exports = require("fs").readFileSync(__dirname + "/made", "utf8")');
		fs.writeFileSync('dep/cli.js', '#!/usr/bin/env node\nconsole.log("cli of", require("./package.json").version)');
		fs.writeFileSync('package.json', JSON.stringify({ name: 'app', version: '0.0.0', private: true }))`, runtime.RunOptions{})
	for _, step := range [][]string{
		{"npm", "pack", "./dep", "--silent"},
		{"npm", "install", "./dep-1.2.3.tgz", "--no-audit", "--no-fund", "--offline"},
	} {
		res, err := rt.Command(t.Context(), step[0], step[1:], runtime.RunOptions{Timeout: time.Minute})
		if err != nil || res.ExitCode != 0 {
			t.Fatalf("%v: %v, %+v\n%s%s", step, err, res.Cause, res.Stdout, res.Stderr)
		}
	}
	if res := harness.Run(t, rt, `import dep from 'dep'; __return(dep)`, runtime.RunOptions{}); string(res.Value) != `"postinstall"` {
		t.Errorf("value %s, stderr %s", res.Value, res.Stderr)
	}
	if got := harness.Output(t, rt, runtime.RunOptions{Timeout: time.Minute}, "sh", "-c", "npm install -g ./dep-1.2.3.tgz --offline --silent >&2 && cd / && dep"); got != "cli of 1.2.3" {
		t.Errorf("installed globally: %q", got)
	}
	res, err := rt.Command(t.Context(), "npx", []string{"--offline", "dep"}, runtime.RunOptions{Timeout: time.Minute})
	if err != nil || string(res.Stdout) != "cli of 1.2.3\n" {
		t.Errorf("npx: %v, %+v", err, res)
	}
}

// ls shows names in all scripts.
func TestListNames(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	const names = "grün\nДва\n日本語\n🙂"
	got := harness.Output(t, rt, runtime.RunOptions{}, "sh", "-c", `mkdir names && cd names && printf '%s\n' "$1" | xargs touch && ls`, "sh", names)
	if got != names {
		t.Errorf("%q, want %q", got, names)
	}
}

func TestCreateErrors(t *testing.T) {
	notADir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(notADir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		opts runtime.Options
		says string
	}{
		"no image":            {runtime.Options{Image: "nosuch"}, "nosuch"},
		"bad store":           {runtime.Options{Store: notADir}, notADir},
		"bad option":          {runtime.Options{Cwd: "x"}, "option Cwd"},
		"bad limit":           {runtime.Options{Limits: runtime.Limits{Memory: 1}}, "limit Memory"},
		"cwd":                 {runtime.Options{Cwd: "/proc/x"}, "/proc"},
		"cwd of the kernel":   {runtime.Options{Cwd: "/sys/fs"}, "/sys"},
		"cwd in memory":       {runtime.Options{Cwd: "/dev/shm"}, "/dev"},
		"long cwd":            {runtime.Options{Cwd: "/" + strings.Repeat("x", 300)}, "file name too long"},
		"cwd is the guard's":  {runtime.Options{Cwd: "/usr/libexec"}, "holds the program"},
		"cwd is below a link": {runtime.Options{Cwd: "/bin/x"}, "/bin/x: not a directory"},
		"cwd is not a folder": {runtime.Options{Cwd: "/etc/passwd"}, "/etc/passwd"},
	} {
		err := harness.CreateError(t, tc.opts)
		if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.HasPrefix(err.Error(), "gaol: create: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := runtime.CloseIdle(); err != nil { // a zygote that is starting in the background
		t.Error(err)
	}
}
