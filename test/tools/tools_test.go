package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/runtime/sandboxtools"
	"gaol/test/harness"
)

// tools calls a toolbox only by the names and JSON of its tools.
type tools struct {
	t *testing.T
	b *sandboxtools.Toolbox
}

func newTools(t *testing.T, o sandboxtools.Options) tools {
	t.Helper()
	o.Create = harness.Options(o.Create)
	b, err := sandboxtools.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return tools{t, b}
}

// args are a call's arguments.
type args map[string]any

func (s tools) try(tool string, a args) (map[string]any, error) {
	s.t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := s.b.Call(s.t.Context(), "sandbox_"+tool, text)
	if err != nil {
		return nil, err
	}
	var result map[string]any
	if err := json.Unmarshal(out, &result); err != nil {
		s.t.Fatal(err)
	}
	return result, nil
}

func (s tools) call(tool string, a args) map[string]any {
	s.t.Helper()
	result, err := s.try(tool, a)
	if err != nil {
		s.t.Fatal(err)
	}
	return result
}

// refused fails the test unless the call fails with the code.
func (s tools) refused(want sandboxtools.Code, tool string, a args) {
	s.t.Helper()
	result, err := s.try(tool, a)
	if got := sandboxtools.CodeOf(err); got != want {
		s.t.Errorf("%s %.200v: code %q, want %q: %v %.200v", tool, a, got, want, err, result)
	}
}

// run runs a command in sandbox "a", which must succeed.
func (s tools) run(name string, list ...string) string {
	s.t.Helper()
	r := s.call("command", args{"containerId": "a", "executable": name, "args": append([]string{}, list...), "workingDirectory": "/workspace"})
	if r["exitCode"] != 0.0 {
		s.t.Fatalf("%s %q: %v", name, list, r)
	}
	return r["stdout"].(string)
}

// A small project in TypeScript is written, built and tested, and its result is read back.
func TestToolsProject(t *testing.T) {
	base := t.TempDir()
	s := newTools(t, sandboxtools.Options{ProjectBase: base})
	made := s.call("init", args{"containerId": "a", "containerName": "build-1", "projectOutPath": filepath.Join(base, "team/one")})
	want := map[string]any{
		"containerId": "a", "containerName": "build-1", "hostName": "build-1", "imageName": "",
		"rootPath": "/workspace", "projectOutPath": filepath.Join(base, "team/one"),
	}
	if diff := gocmp.Diff(want, made); diff != "" {
		t.Error(diff)
	}
	for name, text := range map[string]string{
		"package.json":         `{"name": "sums", "type": "module", "scripts": {"test": "node --test"}}`,
		"src/sum.ts":           "export const sum = (list: number[]): number => list.reduce((a, b) => a + b, 0)\n",
		"src/main.ts":          "import fs from 'node:fs'\nimport { sum } from './sum.ts'\nfs.mkdirSync('dist')\nfs.writeFileSync('dist/out.json', JSON.stringify({ sum: sum([1, 2, 3]), who: process.env.WHO }))\n",
		"test/sum.test.ts":     "import test from 'node:test'\nimport assert from 'node:assert'\nimport { sum } from '../src/sum.ts'\ntest('sums', () => assert.equal(sum([2, 3]), 5))\n",
		"/workspace/notes.txt": "Grüße, 世界 \u0000\u2028 🎉\n",
	} {
		s.call("write_file", args{"containerId": "a", "path": name, "content": text, "createParentDirs": true})
	}
	r := s.call("command", args{
		"containerId": "a", "executable": "node", "args": []string{"src/main.ts"}, "workingDirectory": "/workspace", "envVars": []string{"WHO=you", "WHO=me=us"},
	})
	if r["exitCode"] != 0.0 || r["timedOut"] != false {
		t.Fatal(r)
	}
	if out := s.run("npm", "test", "--silent"); !strings.Contains(out, "pass 1") {
		t.Error(out)
	}
	if r := s.call("read_file", args{"containerId": "a", "path": "dist/out.json"}); r["content"] != `{"sum":6,"who":"me=us"}` || r["encoding"] != "utf8" {
		t.Error(r)
	}
	if r := s.call("read_file", args{"containerId": "a", "path": "notes.txt"}); r["content"] != "Grüße, 世界 \u0000\u2028 🎉\n" {
		t.Errorf("%q", r)
	}
	list := s.call("list_directory", args{"containerId": "a", "path": "/workspace", "recursive": true})
	var paths []string
	for _, e := range list["entries"].([]any) {
		paths = append(paths, fmt.Sprint(e.(map[string]any)["path"], " ", e.(map[string]any)["type"]))
	}
	if diff := gocmp.Diff([]string{
		"/workspace/dist directory", "/workspace/dist/out.json file", "/workspace/notes.txt file", "/workspace/package.json file", "/workspace/src directory",
		"/workspace/src/main.ts file", "/workspace/src/sum.ts file", "/workspace/test directory", "/workspace/test/sum.test.ts file",
	}, paths); diff != "" {
		t.Error(diff)
	}
	s.refused(sandboxtools.NotEmpty, "delete", args{"containerId": "a", "path": "dist"})
	s.call("delete", args{"containerId": "a", "path": "dist", "recursive": true})
	if r := s.call("exists", args{"containerId": "a", "path": "dist"}); r["exists"] != false {
		t.Error(r)
	}
	s.call("destroy", args{"containerId": "a"})
	s.refused(sandboxtools.NotFound, "exists", args{"containerId": "a", "path": "src"})
	if text, err := os.ReadFile(filepath.Join(base, "team/one/src/sum.ts")); err != nil || !bytes.Contains(text, []byte("export")) {
		t.Errorf("after its end the project has %q, %v", text, err)
	}
}

// projectOutPath is one folder in the guest and on the host, and nothing else is shared.
func TestToolsProjectFolder(t *testing.T) {
	base, elsewhere := t.TempDir(), t.TempDir()
	s := newTools(t, sandboxtools.Options{ProjectBase: base})
	s.call("init", args{"containerId": "a", "projectOutPath": "p", "rootPath": "srv/app"})
	shared := filepath.Join(base, "p")
	if err := os.WriteFile(filepath.Join(shared, "from-host"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := s.call("read_file", args{"containerId": "a", "path": "from-host"}); r["content"] != "hello" || r["path"] != "/srv/app/from-host" {
		t.Error(r)
	}
	s.call("write_file", args{"containerId": "a", "path": "from-tool", "content": "x"})
	s.call("command", args{"containerId": "a", "executable": "sh", "args": []string{"-c", "echo y >/srv/app/from-guest; ln -s / out; ln -s " + elsewhere + " away; ln -s ../p up"}, "workingDirectory": "/srv/app"})
	for name, want := range map[string]string{"from-tool": "x", "from-guest": "y\n"} {
		if text, err := os.ReadFile(filepath.Join(shared, name)); string(text) != want || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(shared, "from-guest"), &st); err != nil || st.Uid != uint32(os.Getuid()) {
		t.Errorf("what the guest made belongs to %d, %v", st.Uid, err)
	}
	if r := s.call("file_info", args{"containerId": "a", "path": "from-host"}); r["owner"] != 1000.0 {
		t.Errorf("the guest sees %v", r)
	}
	s.refused(sandboxtools.Busy, "delete", args{"containerId": "a", "path": "/srv/app", "recursive": true})
	// The next sandbox does not follow links of the guest, neither out nor in.
	if err := os.Symlink(elsewhere, filepath.Join(base, "hosts-own")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]sandboxtools.Code{
		"p/out/etc/new": sandboxtools.Permission, "p/away": sandboxtools.Permission, "p/away/new": sandboxtools.Permission, "p/up": sandboxtools.Permission,
		"hosts-own/new": sandboxtools.Permission, "..": sandboxtools.Permission, "../x": sandboxtools.Permission, "p/../../x": sandboxtools.Permission,
		".": sandboxtools.Permission, base: sandboxtools.Permission, elsewhere: sandboxtools.Permission, base + "x": sandboxtools.Permission, "/": sandboxtools.Permission,
		"p/from-host": sandboxtools.NotDirectory, "p/from-host/new": sandboxtools.NotDirectory, strings.Repeat("a", 256): sandboxtools.InvalidArgument, "a\x00b": sandboxtools.InvalidArgument,
	} {
		s.refused(want, "init", args{"projectOutPath": path})
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("made elsewhere: %v, %v", left, err)
	}
	s.refused(sandboxtools.Permission, "init", args{"projectOutPath": "/etc"})
	none := newTools(t, sandboxtools.Options{})
	none.refused(sandboxtools.Permission, "init", args{"projectOutPath": "p"})
}

func TestToolsCommand(t *testing.T) {
	s := newTools(t, sandboxtools.Options{Create: runtime.Options{Limits: runtime.Limits{Output: 1000}}})
	s.call("init", args{"containerId": "a"})
	s.call("write_file", args{"containerId": "a", "path": "notes.txt", "content": "hi"})
	for _, tc := range []struct {
		name string
		args args
		want map[string]any // the rest is that of a command that succeeds and prints nothing
	}{
		{"arguments as they are", args{"executable": "node", "args": []string{"-p", "process.argv.slice(1)", "--", "$HOME;", "a b", "*"}}, map[string]any{"stdout": "[ '$HOME;', 'a b', '*' ]\n"}},
		{"default folder", args{"executable": "pwd"}, map[string]any{"stdout": "/workspace\n"}},
		{"what was written", args{"executable": "cat", "args": []string{"notes.txt"}}, map[string]any{"stdout": "hi"}},
		{"relative folder", args{"executable": "pwd", "workingDirectory": "."}, map[string]any{"stdout": "/workspace\n"}},
		{"exit code", args{"executable": "sh", "args": []string{"-c", "echo no >&2; exit 3"}}, map[string]any{"stderr": "no\n", "exitCode": 3.0}},
		{"timeout", args{"executable": "sh", "args": []string{"-c", "echo on; sleep 60"}, "timeout": 1}, map[string]any{"stdout": "on\n", "exitCode": 137.0, "timedOut": true, "cause": "timeout"}},
		{"signal", args{"executable": "sh", "args": []string{"-c", "kill -TERM $$"}}, map[string]any{"exitCode": 143.0, "cause": "signal"}},
		{"no text", args{"executable": "printf", "args": []string{`a\377\376b`}}, map[string]any{"stdout": "a\ufffdb"}},
		{"cut within a character", args{"executable": "node", "args": []string{"-e", "process.stdout.write('x' + '€'.repeat(500))"}}, map[string]any{"stdout": "x" + strings.Repeat("€", 333), "stdoutTruncated": true}},
		{"empty variable", args{"executable": "sh", "args": []string{"-c", `printf %s "${V-unset}"`}, "envVars": []string{"V="}}, nil},
	} {
		tc.args["containerId"] = "a"
		want := map[string]any{"stdout": "", "stderr": "", "exitCode": 0.0, "timedOut": false, "cause": "", "stdoutTruncated": false, "stderrTruncated": false}
		for k, v := range tc.want {
			want[k] = v
		}
		got := s.call("command", tc.args)
		if tc.name == "timeout" {
			harness.InTime(500*time.Millisecond, func(limit time.Duration) bool {
				tc.args["timeout"] = limit.Milliseconds()
				got = s.call("command", tc.args)
				return got["stdout"] == want["stdout"]
			})
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	s.call("write_file", args{"containerId": "a", "path": "text", "content": "x"})
	for name, tc := range map[string]struct {
		args args
		want sandboxtools.Code
	}{
		"no program":        {args{"executable": "nosuch"}, sandboxtools.NotFound},
		"no right":          {args{"executable": "/workspace/text"}, sandboxtools.Permission},
		"no folder":         {args{"executable": "pwd", "workingDirectory": "/nosuch"}, sandboxtools.NotFound},
		"a file for folder": {args{"executable": "pwd", "workingDirectory": "/workspace/text"}, sandboxtools.NotDirectory},
		"no name of var":    {args{"executable": "pwd", "envVars": []string{"=x"}}, sandboxtools.InvalidArgument},
		"no value":          {args{"executable": "pwd", "envVars": []string{"xyz"}}, sandboxtools.InvalidArgument},
		"many arguments":    {args{"executable": "pwd", "args": slices.Repeat([]string{strings.Repeat("x", 100_000)}, 9)}, sandboxtools.InvalidArgument},
		"many variables":    {args{"executable": "pwd", "envVars": manyVariables()}, sandboxtools.InvalidArgument},
	} {
		tc.args["containerId"] = "a"
		if _, err := s.try("command", tc.args); sandboxtools.CodeOf(err) != tc.want {
			t.Errorf("%s: %q, want %q: %.300v", name, sandboxtools.CodeOf(err), tc.want, err)
		}
	}
}

// manyVariables are variables with more bytes than a run may have.
func manyVariables() (list []string) {
	for i := range 9 {
		list = append(list, fmt.Sprintf("v%d=%s", i, strings.Repeat("x", 100_000)))
	}
	return list
}

// The end of the caller's context is not reported as a timeout of the command.
func TestToolsContext(t *testing.T) {
	s := newTools(t, sandboxtools.Options{})
	s.call("init", args{"containerId": "a", "imageName": cmp.Or(os.Getenv(harness.ImageVar), "default")})
	sleep := json.RawMessage(`{"containerId": "a", "executable": "sleep", "args": ["60"]}`)
	short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := s.b.Call(short, "sandbox_command", sleep); sandboxtools.CodeOf(err) != sandboxtools.Timeout {
		t.Error(err)
	}
	if _, err := s.b.Call(short, "sandbox_exists", json.RawMessage(`{"containerId": "a", "path": "x"}`)); sandboxtools.CodeOf(err) != sandboxtools.Timeout {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	if _, err := s.b.Call(gone, "sandbox_command", sleep); sandboxtools.CodeOf(err) != sandboxtools.Canceled {
		t.Error(err)
	}
	s.run("pwd")
}
