package main

import (
	"os"
	"path/filepath"
	"testing"

	"gaol/runtime"
)

// A file has the format that Node would find.
func TestFileFormat(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"package.json": `{"type": "commonjs"}`,
		"a.js":         "", "a.ts": "", "a.mjs": "", "bare": "",
		"esm/package.json": `{"type": "module", "Type": "commonjs"}`,
		"esm/a.js":         "", "esm/a.cjs": "", "esm/deep/a.tsx": "",
		"none/package.json":           `{"name": "none"}`,
		"none/a.js":                   "",
		"odd/package.json":            `{"type": ["module"]}`,
		"odd/a.js":                    "",
		"node_modules/package.json":   `{"type": "module"}`,
		"node_modules/a.js":           "",
		"node_modules/p/package.json": `{"type": "module"}`,
		"node_modules/p/a.js":         "",
		"wrong/package.json":          `{`,
		"wrong/a.js":                  "", "wrong/a.mjs": "",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../esm/a.js", filepath.Join(dir, "none/link.js")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]runtime.ModuleFormat{
		"a.js": runtime.FormatCommonJS, "a.ts": runtime.FormatCommonJS, "a.mjs": runtime.FormatAuto, "bare": runtime.FormatCommonJS,
		"esm/a.js": runtime.FormatESM, "esm/a.cjs": runtime.FormatAuto, "esm/deep/a.tsx": runtime.FormatESM,
		"none/a.js": runtime.FormatDetect, "none/link.js": runtime.FormatESM, "odd/a.js": runtime.FormatDetect,
		"node_modules/a.js": runtime.FormatDetect, "node_modules/p/a.js": runtime.FormatESM, "wrong/a.mjs": runtime.FormatAuto,
	} {
		var f fake
		got := f.call(t, "", "run", filepath.Join(dir, path))
		if got.code != 0 || f.run.Format != want {
			t.Errorf("%s: %+v, format %v, want %v", path, got, f.run.Format, want)
		}
		if got := f.call(t, "", "run", "--format", "auto", filepath.Join(dir, path)); got.code != 0 || f.run.Format != want {
			t.Errorf("%s with --format auto: %+v, format %v, want %v", path, got, f.run.Format, want)
		}
	}
	wrong := filepath.Join(dir, "wrong/a.js")
	checkFailure(t, new(fake).call(t, "", "run", wrong), "wrong/package.json is no valid package.json: unexpected end of JSON input; repair it, or say --format esm or --format cjs")
	for flag, want := range map[string]runtime.ModuleFormat{"esm": runtime.FormatESM, "cjs": runtime.FormatCommonJS} {
		for _, args := range [][]string{{wrong}, {"-e", "1"}, {"-"}} {
			var f fake
			if got := f.call(t, "", append([]string{"run", "--format", flag}, args...)...); got.code != 0 || f.run.Format != want {
				t.Errorf("--format %s %v: %+v, format %v", flag, args, got, f.run.Format)
			}
		}
	}
	checkFailure(t, new(fake).call(t, "", "run", "--format", "umd", "-e", "1"), "want auto, esm or cjs")
}

// Standard input is read if it is piped and nothing else is named. A terminal and /dev/null
// are not piped.
func TestPipedInput(t *testing.T) {
	piped := func(text string, args ...string) (*fake, outcome) {
		t.Helper()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
		w.Close()
		f := &fake{}
		return f, f.callReader(t.Context(), r, args...)
	}
	for _, command := range []string{"run", "eval"} {
		if f, got := piped("1 + 1", command); got.code != 0 || f.code != "1 + 1" {
			t.Errorf("%s: %+v, ran %q", command, got, f.code)
		}
		if f, got := piped("1 + 1", command, "-e", "2"); got.code != 0 || f.code != "2" {
			t.Errorf("%s -e: %+v, ran %q", command, got, f.code)
		}
	}
	if f, got := piped("1", "run", "--", "a"); got.code != 0 || f.code != "1" || len(f.run.Args) != 1 {
		t.Errorf("run -- a: %+v, ran %q with %q", got, f.code, f.run.Args)
	}
	if f, got := piped("1", "run", "--command", "--", "ls"); got.code != 0 || f.code != "" || f.command == nil {
		t.Errorf("run --command: %+v, ran %q", got, f.code)
	}
	if _, got := piped(`{"network": "deny"}`, "policy", "check"); got.code != 0 || got.stdout == "" {
		t.Errorf("policy check: %+v", got)
	}
	_, got := piped("1", "run", "--stdin")
	checkFailure(t, got, "nothing to run")
	_, got = piped("", "run")
	checkFailure(t, got, "nothing to run")
	_, got = piped("", "eval")
	checkFailure(t, got, "nothing to evaluate")
	if f, got := piped("", "run", "-"); got.code != 0 || f.closed != 1 {
		t.Errorf("run - with nothing: %+v", got)
	}

	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for text, args := range map[string][]string{"nothing to run": {"run"}, "nothing to evaluate": {"eval"}, "nothing to check": {"policy", "check"}} {
		checkFailure(t, new(fake).callReader(t.Context(), null, args...), text)
	}
}

func TestVersionCommand(t *testing.T) {
	flag, command := new(fake).call(t, "", "--version"), new(fake).call(t, "", "version")
	if command != flag || command.code != 0 {
		t.Errorf("%+v, want %+v", command, flag)
	}
	checkFailure(t, new(fake).call(t, "", "version", "x"), "unexpected argument")
}
