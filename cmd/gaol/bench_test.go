package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/cmd/gaol/bench"
	"gaol/internal/ociruntime"
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
		}, nil
	}}
	code := a.main(ctx, append([]string{"bench"}, args...))
	return asked, outcome{code, stdout.String(), stderr.String()}
}

func TestBenchFlags(t *testing.T) {
	both := []bench.Side{bench.Exec, bench.Zygote}
	all := bench.IDs(bench.Figures())
	for _, tc := range []struct {
		args string
		ids  []string
		want bench.Options
	}{
		{"", all, bench.Options{Samples: 200, Jailed: both}},
		{"-n 7", all, bench.Options{Samples: 7, Jailed: both}},
		{"--launcher both", all, bench.Options{Samples: 200, Jailed: both}},
		{"--launcher exec", all, bench.Options{Samples: 200, Jailed: both[:1]}},
		{"--launcher both --launcher zygote --samples 1", all, bench.Options{Samples: 1, Jailed: both[1:]}},
		{"--only create-run-close,run-p99 --only run-p50", []string{"run-p50", "run-p99", "create-run-close"}, bench.Options{Samples: 200, Jailed: both}},
		{"--isolation runc,oci=/a/b --only run-p99", []string{"run-p99"}, bench.Options{Samples: 200, Jailed: []bench.Side{"runc", "oci=/a/b"}}},
		{"--image i --store s", all, bench.Options{Samples: 200, Jailed: both, Create: runtime.Options{Image: "i", Store: "s"}}},
	} {
		t.Run(tc.args, func(t *testing.T) {
			asked, got := fakeBench(t.Context(), nil, strings.Fields(tc.args)...)
			if got.code != 0 || got.stderr != "" || !strings.HasPrefix(got.stdout, "side ") {
				t.Errorf("got %+v", got)
			}
			if diff := cmp.Diff(tc.ids, bench.IDs(asked.Figures)); diff != "" {
				t.Errorf("figures (-want +got):\n%s", diff)
			}
			asked.Figures = nil
			if diff := cmp.Diff(tc.want, asked); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBenchAllIsolations(t *testing.T) {
	want := []bench.Side{"native"}
	for _, name := range []string{"runc", "crun"} {
		if _, err := ociruntime.Find(name); err == nil {
			want = append(want, bench.Side(name))
		}
	}
	if _, err := ociruntime.FindRunsc(); err == nil {
		want = append(want, "gvisor")
	}
	asked, _ := fakeBench(t.Context(), nil, "--isolation", "all")
	if diff := cmp.Diff(want, asked.Jailed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBenchRefuses(t *testing.T) {
	for args, text := range map[string]string{
		"--launcher fork":                  "want both or exec or zygote; see gaol bench --help",
		"-n 0":                             "--samples",
		"--only run-p50,fast":              `--only: "fast" is not a valid figure, want some of run-p50, `,
		"--samples many":                   "--samples",
		"--image=":                         `"--image" flag: it is empty`,
		"--isolation=":                     `"--isolation" flag: it is empty`,
		"--isolation all,runc":             `isolation "all": not one of native, gvisor, microvm, runc, crun and oci=/path; see gaol bench --help`,
		"--isolation runc,native,runc":     "--isolation names runc twice",
		"--isolation runc --launcher exec": "--isolation excludes --launcher",
		"fast":                             `unknown command "fast"`,
	} {
		t.Run(args, func(t *testing.T) {
			_, got := fakeBench(t.Context(), nil, strings.Fields(args)...)
			checkFailure(t, got, text)
		})
	}
}

func TestBenchFails(t *testing.T) {
	_, got := fakeBench(t.Context(), errors.New("bench: no jails"))
	checkFailure(t, got, "gaol: bench: no jails")
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
	for _, key := range []string{"kernel", "arch", "cpus", "node", "image", "samples", "sides"} {
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
