package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/cmd/gaol/bench"
	"gaol/runtime"
)

// fakeBench runs gaol bench with a measurement that only records its options.
func fakeBench(ctx context.Context, failure error, args ...string) (bench.Options, outcome) {
	var asked bench.Options
	var stdout, stderr strings.Builder
	a := &app{stdout: &stdout, stderr: &stderr, measure: func(_ context.Context, o bench.Options) (*bench.Report, error) {
		asked = o
		if failure != nil {
			return nil, failure
		}
		return &bench.Report{
			Figures: []bench.Figure{{ID: "run-p50", Name: "run", Unit: "ms", Values: bench.Values{bench.Bare: 2}}},
			Curves:  []bench.Curve{{Name: "run", Times: bench.Series{1}}},
		}, nil
	}}
	code := a.main(ctx, append([]string{"bench"}, args...))
	return asked, outcome{code, stdout.String(), stderr.String()}
}

func TestBenchFlags(t *testing.T) {
	both := []runtime.Launcher{runtime.LauncherExec, runtime.LauncherZygote}
	for _, tc := range []struct {
		args string
		want bench.Options
	}{
		{"", bench.Options{Samples: bench.DefaultSamples}},
		{"-n 7 --quick", bench.Options{Samples: 7, Quick: true}},
		{"--launcher both", bench.Options{Samples: bench.DefaultSamples, Launchers: both}},
		{"--launcher exec", bench.Options{Samples: bench.DefaultSamples, Launchers: both[:1]}},
		{"--launcher both --launcher zygote --samples 1", bench.Options{Samples: 1, Launchers: both[1:]}},
		{"--only call,normalize --only run-p50", bench.Options{Samples: bench.DefaultSamples, Only: []bench.ID{"call", "normalize", "run-p50"}}},
		{"--image i --store s", bench.Options{Samples: bench.DefaultSamples, Create: runtime.Options{Image: "i", Store: "s"}}},
	} {
		t.Run(tc.args, func(t *testing.T) {
			asked, got := fakeBench(t.Context(), nil, strings.Fields(tc.args)...)
			if got.code != 0 || got.stderr != "" || !strings.HasPrefix(got.stdout, "figure ") {
				t.Errorf("got %+v", got)
			}
			if diff := cmp.Diff(tc.want, asked); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBenchRefuses(t *testing.T) {
	for args, text := range map[string]string{
		"--launcher fork":             "want exec, zygote or both; see gaol bench --help",
		"-n 0":                        "--samples",
		"--only call,fast":            `there is no figure "fast", but run-p50, `,
		"--only=":                     `there is no figure ""`,
		"--only call --picture x.svg": "leave out --only",
		"--samples many":              "--samples",
		"--image=":                    "--image is empty",
		"--picture=":                  "--picture is empty",
		"fast":                        `unexpected argument "fast"`,
		"--picture /nosuch/bench.svg": "no such file",
	} {
		t.Run(args, func(t *testing.T) {
			_, got := fakeBench(t.Context(), nil, strings.Fields(args)...)
			checkFailure(t, got, text)
		})
	}
}

func TestBenchPicture(t *testing.T) {
	dir := t.TempDir()
	picture := filepath.Join(dir, "bench.svg")
	check := func(want string) {
		t.Helper()
		names, err := os.ReadDir(dir)
		if err != nil || len(names) != 1 {
			t.Fatalf("%v, %v: want one file", names, err)
		}
		text, err := os.ReadFile(picture)
		if info, _ := os.Stat(picture); err != nil || !strings.HasPrefix(string(text), want) || info.Mode() != 0o644 {
			t.Errorf("%v, %v: %.20q, want %q", err, info.Mode(), text, want)
		}
	}
	if err := os.WriteFile(picture, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, got := fakeBench(t.Context(), errors.New("bench: no jails"), "--picture", picture)
	checkFailure(t, got, "gaol: bench: no jails")
	check("old")
	if _, got := fakeBench(t.Context(), nil, "--picture", picture, "--json"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	check("<svg ")
}

func TestBenchJSON(t *testing.T) {
	_, got := fakeBench(t.Context(), nil, "--json")
	var object struct {
		Environment map[string]any
		Figures     []map[string]any
	}
	if err := json.Unmarshal([]byte(got.stdout), &object); err != nil || got.stderr != "" {
		t.Fatalf("%v: %+v", err, got)
	}
	for _, key := range []string{"kernel", "arch", "cpus", "node", "image", "heap", "samples", "quick"} {
		if _, ok := object.Environment[key]; !ok {
			t.Errorf("no %s in %v", key, object.Environment)
		}
	}
	if len(object.Figures) != 1 || object.Figures[0]["name"] != "run" {
		t.Errorf("figures: %v", object.Figures)
	}
}

func TestBenchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(signalError{syscall.SIGINT})
	_, got := fakeBench(ctx, context.Canceled)
	if want := (outcome{code: 130}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
