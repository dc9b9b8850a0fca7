package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/test/harness"
	"gaol/test/tier"
)

// docsSite copies examples/docs-site, with its framework as npm ci installs it.
func docsSite(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := os.CopyFS(dir, os.DirFS("../../examples/docs-site"))
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, "node_modules/tally"), os.DirFS(filepath.Join(dir, "framework")))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// gateCommand returns the command of the site's workflow.
func gateCommand(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, ".github/workflows/examples.yml"))
	if err != nil {
		t.Fatal(err)
	}
	_, line, ok := strings.Cut(string(text), "gaol snippet check ")
	line, _, ended := strings.Cut(line, "\n")
	if !ok || !ended {
		t.Fatal("the workflow has no check")
	}
	return append([]string{"snippet", "check"}, strings.Fields(line)...)
}

// site runs the gate of a site as its workflow does, and returns the exit status and standard output.
func site(t *testing.T, dir string, env ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Gaol(t), gateCommand(t, dir)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // the exit status shows it
	if stderr.Len() > 0 {
		t.Errorf("standard error: %s", &stderr)
	}
	return cmd.ProcessState.ExitCode(), stdout.String()
}

func change(t *testing.T, file, old, text string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(b, []byte(old)) {
		t.Fatalf("%s: %v; want %q in it", file, err, old)
	}
	if err := os.WriteFile(file, bytes.Replace(b, []byte(old), []byte(text), 1), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDocsSite runs the CI gate of examples/docs-site: it passes, and it fails when an example
// or the framework breaks.
func TestDocsSite(t *testing.T) {
	tier.Soak(t)
	dir := docsSite(t)
	if code, out := site(t, dir); code != 0 || !strings.HasPrefix(out, "8 examples: 7 passed, 0 failed, 1 skipped; ") {
		t.Fatalf("exit status %d:\n%s", code, out)
	}
	change(t, filepath.Join(dir, "docs/guide.md"), "dispatch('add', 3)", "dispatch('ad', 3)")
	code, out := site(t, dir, "GITHUB_ACTIONS=true", "GITHUB_WORKSPACE="+dir)
	if code != 1 || !strings.Contains(out, "::error file=docs/guide.md,line=") || !strings.Contains(out, "there is no action ad") {
		t.Errorf("a broken example: exit status %d:\n%s", code, out)
	}
	change(t, filepath.Join(dir, "docs/guide.md"), "dispatch('ad', 3)", "dispatch('add', 4)")
	if code, out := site(t, dir); code != 1 || !strings.Contains(out, `-    "count": 3`) || !strings.Contains(out, `+    "count": 4`) {
		t.Errorf("another output: exit status %d:\n%s", code, out)
	}
	change(t, filepath.Join(dir, "docs/guide.md"), "dispatch('add', 4)", "dispatch('add', 3)")
	change(t, filepath.Join(dir, "node_modules/tally/index.js"), "Object.assign(current, await action", "Object.assign({}, await action")
	if code, out := site(t, dir); code != 1 {
		t.Errorf("a broken framework: exit status %d:\n%s", code, out)
	}
}

// The expected output of the site is the present one.
func TestDocsSiteExpected(t *testing.T) {
	text, err := os.ReadFile("../../examples/docs-site/docs/guide.md.expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var page struct{ Examples map[string]json.RawMessage }
	if err := json.Unmarshal(text, &page); err != nil || len(page.Examples) != 4 {
		t.Errorf("%v: %s", err, text)
	}
}
