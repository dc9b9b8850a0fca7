package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/runtime/snippets"
)

// examples contains a folder for each example of the playground.
const examples = "../../cmd/gaol/playground/page/src/examples"

// denying are the denials of the playground's strict permissions.
const denying = `{"fs": {"rules": [{"mode": "deny", "operations": ["write"], "paths": ["/**"]}]}, "childProcess": "deny"}`

// TestPlaygroundExamples runs the examples that the playground offers.
func TestPlaygroundExamples(t *testing.T) {
	plain := newRunner(t, snippets.Options{})
	runners := map[string]*snippets.Runner{
		"denials":   newRunner(t, snippets.Options{Sandbox: runtime.Options{Permissions: permissions(t, denying)}}),
		"directive": newRunner(t, snippets.Options{Adapter: snippets.Directive, NodeModules: packages}),
	}
	dirs, err := os.ReadDir(examples)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		t.Run(dir.Name(), func(t *testing.T) {
			r := runners[dir.Name()]
			if r == nil {
				r = plain
			}
			in := snippets.Input{Files: exampleFiles(t, dir.Name()), Timeout: snippets.MaxTimeout}
			if dir.Name() == "timeout" {
				in.Timeout = time.Second
			}
			out := run(t, r, in)
			if len(out.Logs) == 0 { // on a busy machine
				in.Timeout = snippets.MaxTimeout
				out = run(t, r, in)
			}
			checkExample(t, dir.Name(), out)
		})
	}
}

func checkExample(t *testing.T, name string, out *snippets.Output) {
	t.Helper()
	want := map[string]string{"timeout": "wall-clock budget", "cause": "Cause: SyntaxError"}[name]
	switch got := strings.Join(out.Errors, "\n"); {
	case want == "" && (got != "" || out.TimedOut):
		t.Errorf("errors: %s", got)
	case !strings.Contains(got, want):
		t.Errorf("errors: %s, want %q", got, want)
	}
	logs := strings.Join(out.Logs, "\n")
	if logs == "" {
		t.Error("the example prints nothing")
	}
	if name == "denials" && (strings.Contains(logs, "was allowed") || len(out.Denials) == 0) {
		t.Errorf("logs: %s, denials: %v", logs, out.Denials)
	}
}

// exampleFiles reads the files of an example, whose names end in .txt so that esbuild makes strings of them.
func exampleFiles(t *testing.T, name string) (files []snippets.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(examples, name, "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no files", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, snippets.File{Path: "src/" + strings.TrimSuffix(filepath.Base(path), ".txt"), Source: string(text)})
	}
	return files
}
