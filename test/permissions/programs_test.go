package permissions

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// native compiles a program of testdata once, an addon with -DADDON.
var native = func() func(t testing.TB, name string, flags ...string) []byte {
	var mu sync.Mutex
	built := map[string][]byte{}
	return func(t testing.TB, name string, flags ...string) []byte {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		key := name + " " + strings.Join(flags, " ")
		if built[key] != nil {
			return built[key]
		}
		to := filepath.Join(t.TempDir(), name)
		args := slices.Concat([]string{"-Os", "-s", "-o", to}, flags, []string{"testdata/" + name + ".c"})
		if text, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		program, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		built[key] = program
		return program
	}
}()

func static(t testing.TB, name string) []byte {
	t.Helper()
	return native(t, name, "-static", "-pthread")
}

func addon(t testing.TB, name string) []byte {
	t.Helper()
	return native(t, name, "-shared", "-fPIC", "-DADDON")
}

// put writes a file as the guest would.
func put(t testing.TB, rt *runtime.NodeRuntime, path string, content []byte) {
	t.Helper()
	res := harness.Run(t, rt, `import fs from 'node:fs'; import { dirname } from 'node:path'; const [, , path] = process.argv;
		fs.mkdirSync(dirname(path), { recursive: true }); fs.writeFileSync(path, fs.readFileSync(0), { mode: 0o755 })`,
		runtime.RunOptions{Args: []string{path}, Stdin: bytes.NewReader(content)})
	if res.ExitCode != 0 {
		t.Fatalf("put %s: %s", path, res.Stderr)
	}
}

// value runs a program and decodes the value that it returns.
func value[T any](t testing.TB, rt *runtime.NodeRuntime, code string, o runtime.RunOptions) T {
	t.Helper()
	res := harness.Run(t, rt, code, o)
	var v T
	if err := res.Decode(&v); err != nil || res.ExitCode != 0 {
		t.Fatalf("%v: %s%s", err, res.Stdout, res.Stderr)
	}
	return v
}

func source(t testing.TB, name string) string {
	t.Helper()
	code, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(code)
}

func text(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// permissions parses a policy.
func permissions(t testing.TB, text string) policy.Permissions {
	t.Helper()
	p, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fsRules is a scope of fs with a default, and rules in JSON.
func fsRules(t testing.TB, fallback, rules string) policy.Permissions {
	t.Helper()
	return permissions(t, `{"fs":{"default":"`+fallback+`","rules":[`+rules+`]}}`)
}
