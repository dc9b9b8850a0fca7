package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
)

// TestJSON compares with files, because programs rely on the shape.
func TestJSON(t *testing.T) {
	full := runtime.Result{
		Stdout:   []byte("<héllo>\n\xff"),
		Stderr:   []byte("at a & b\n"),
		ExitCode: 137,
		Signal:   "SIGKILL",
		Cause:    runtime.CauseMemory,
		Value:    []byte(`{"html":"<b>","big":12345678901234567890,"list":[1, null]}`),
		Duration: 4123456 * time.Nanosecond,
		Launcher: runtime.LauncherExec, LauncherReason: "Node reads the variable <A> when it starts",
		Usage: runtime.Usage{CPU: 3200 * time.Microsecond, PeakMemory: 31457280, PeakPids: 7},
	}
	full.Truncated.Stderr = true
	full.Truncated.Denials = true
	full.Denials = []runtime.Denial{{
		Scope: "fs", Operation: "rename", Target: "/workspace/<a>", Rule: "fs.rules[1]", Count: 3, Source: runtime.SourceSeccomp,
	}}
	for _, tc := range []struct {
		name string
		res  runtime.Result
	}{
		{"empty", runtime.Result{}},
		{"null", runtime.Result{Value: []byte("null")}},
		{"full", full},
		{"error", runtime.Result{ExitCode: 1, Error: &runtime.GuestError{
			Name: "Error", Message: "no", Stack: "Error: no\n    at file:///workspace/main.mjs:1:7", Code: "ENOENT",
			Properties: map[string]json.RawMessage{"errno": []byte("-2")}, Cause: &runtime.GuestError{Name: "TypeError", Message: "why"},
		}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join("testdata", "json", tc.name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			f := fake{guest: returns(tc.res)}
			got := f.call(t, "", "run", "--json", "-e", "1")
			if diff := cmp.Diff(string(want), got.stdout); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestJSONGarbage: the guest writes the value, so an invalid one must not be printed.
func TestJSONGarbage(t *testing.T) {
	f := fake{guest: returns(runtime.Result{Value: []byte(`{"a":`)})}
	checkFailure(t, f.call(t, "", "run", "--json", "-e", "1"), "JSON")
}

func TestVersion(t *testing.T) {
	got := new(fake).call(t, "", "--version")
	if got.code != 0 || !strings.HasPrefix(got.stdout, "gaol "+version+" (go") {
		t.Errorf("got %+v", got)
	}
}

func TestHelp(t *testing.T) {
	for _, tc := range []struct {
		args string
		want string
	}{
		{"", "gaol doctor"},
		{"--help", "Available Commands"},
		{"run --help", "globalThis.__return"},
		{"run --help", "gaol run [flags] FILE|DIR [-- ARG...]"},
		{"run --help", "(default 256m)"},
		{"doctor --help", "sudo gaol doctor"},
		{"image", "build"},
		{"image build --help", "--node"},
		{"run --help", "tcp://localhost:*"},
		{"policy", "presets"},
		{"policy check --help", "gaol policy check policy.json"},
		{"image import --help", "registry.example/app:1"},
		{"image import --help", "(default 8g)"},
		{"completion bash", "bash completion"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			got := new(fake).call(t, "", strings.Fields(tc.args)...)
			if got.code != 0 || got.stderr != "" || !strings.Contains(got.stdout, tc.want) {
				t.Errorf("exit status %d, standard error %q, output %q; want %q in it", got.code, got.stderr, got.stdout, tc.want)
			}
		})
	}
}
