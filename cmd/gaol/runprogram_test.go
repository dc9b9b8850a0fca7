package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/cmd/gaol/flags"
	"gaol/runtime"
)

func TestRunProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prog.ts")
	bare := filepath.Join(t.TempDir(), "prog")
	for _, path := range []string{file, bare} {
		if err := os.WriteFile(path, []byte("from file"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name       string
		args       []string
		code, file string
		rest       []string
		command    []string
	}{
		{"eval", []string{"-e", "1+1"}, "1+1", "", nil, nil},
		{"empty eval", []string{"-e", ""}, "", "", nil, nil},
		{"eval with arguments", []string{"-e", "1", "--", "-e", "--json", "-"}, "1", "", []string{"-e", "--json", "-"}, nil},
		{"file", []string{file}, "from file", "prog.ts", nil, nil},
		{"file, flags behind", []string{file, "--json", "--", "a"}, "from file", "prog.ts", []string{"a"}, nil},
		{"file without an ending", []string{bare}, "from file", "", nil, nil},
		{"standard input", []string{"-", "--", "a", "b"}, "from stdin", "", []string{"a", "b"}, nil},
		{"command", []string{"--command", "--", "npm", "--version"}, "", "", nil, []string{"npm", "--version"}},
		{"command alone", []string{"--command", "--", "ls"}, "", "", nil, []string{"ls"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var f fake
			if got := f.call(t, "from stdin", append([]string{"run"}, tc.args...)...); got.code != 0 {
				t.Fatalf("got %+v", got)
			}
			got := []any{f.code, f.run.Name, len(f.run.Args), strings.Join(f.run.Args, " "), strings.Join(f.command, " ")}
			want := []any{tc.code, tc.file, len(tc.rest), strings.Join(tc.rest, " "), strings.Join(tc.command, " ")}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("program (-want +got):\n%s", diff)
			}
			if f.run.Stdin != nil {
				t.Error("standard input is passed to the program without --stdin")
			}
		})
	}
}

func TestRunRefuses(t *testing.T) {
	big := filepath.Join(t.TempDir(), "big.mjs")
	if err := os.WriteFile(big, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, flags.MaxCode+1); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args string
		want string
	}{
		{"run", "nothing to run"},
		{"run a.mjs b.mjs", `"b.mjs"`},
		{"run -e 1 a.mjs", "exclude each other"},
		{"run -e 1 --command -- ls", "exclude each other"},
		{"run --command", "needs a program"},
		{"run --command ls", "after --"},
		{"run - --stdin", "exclude each other"},
		{"run /nonexistent/x.mjs", "/nonexistent/x.mjs: no such file"},
		{"run /", "no main in package.json and no index"},
		{"run " + big, "more than 16m"},
		{"run --bogus", "--bogus"},
		{"run -x", "-x"},
		{"run -e", "-e"},
		{"run --timeout -e 1", "--timeout"},
		{"run --timeout 5 -e 1", "--timeout"},
		{"run --timeout -5s -e 1", "--timeout"},
		{"run --cpu-time x -e 1", "--cpu-time"},
		{"run --memory 0 -e 1", "--memory"},
		{"run --memory 256mb -e 1", "--memory"},
		{"run --disk -1 -e 1", "--disk"},
		{"run --max-output k -e 1", "--max-output"},
		{"run --cpus NaN -e 1", "--cpus"},
		{"run --cpus 0 -e 1", "--cpus"},
		{"run --pids 1.5 -e 1", "--pids"},
		{"run --env K -e 1", "--env"},
		{"run --env =V -e 1", "--env"},
		{"run --cwd rel -e 1", "--cwd"},
		{"run --image= -e 1", "--image"},
		{"run --json=maybe -e 1", "--json"},
		{"run --save BAD -e 1", `--save: name "BAD": want 1 to 128 characters of a-z`},
		{"run --save= -e 1", "--save"},
		{"run --save " + strings.Repeat("a", 64) + " -e 1", "looks like an id"},
		{"bogus", `unknown command "bogus"`},
		{"image bogus", `unknown command "bogus"`},
		{"image rm", "at least 1"},
		{"image tag x", "at least 2"},
		{"image import", "accepts 1 arg"},
		{"image import x --max-size none", "want a size"},
		{"image ls x", `unknown command "x"`},
		{"doctor x", `unknown command "x"`},
	} {
		t.Run(tc.args, func(t *testing.T) {
			var f fake
			checkFailure(t, f.call(t, "", strings.Fields(tc.args)...), tc.want)
			if f.closed != 0 {
				t.Error("a sandbox was created for a wrong command line")
			}
		})
	}
}

// The format of a file is as Node would detect it.
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
	checkFailure(t, new(fake).call(t, "", "run", wrong), "wrong/package.json is not a valid package.json: unexpected end of JSON input; repair it, or use --format esm or --format cjs")
	for flag, want := range map[string]runtime.ModuleFormat{"esm": runtime.FormatESM, "cjs": runtime.FormatCommonJS} {
		for _, args := range [][]string{{wrong}, {"-e", "1"}, {"-"}} {
			var f fake
			if got := f.call(t, "", append([]string{"run", "--format", flag}, args...)...); got.code != 0 || f.run.Format != want {
				t.Errorf("--format %s %v: %+v, format %v", flag, args, got, f.run.Format)
			}
		}
	}
	checkFailure(t, new(fake).call(t, "", "run", "--format", "umd", "-e", "1"), "want auto or cjs or esm")
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
	checkFailure(t, new(fake).call(t, "", "version", "x"), "unknown command")
}
