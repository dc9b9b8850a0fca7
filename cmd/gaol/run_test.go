package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gaol/cmd/gaol/report"
	"gaol/rootfs"
	"gaol/runtime"
)

func TestRunFlags(t *testing.T) {
	defaults := runtime.Options{
		Cwd:      "/workspace",
		Hostname: "secure-exec",
		Launcher: runtime.LauncherExec,
		Limits:   runtime.DefaultLimits(),

		WorkInProcess: true, // the code is the user's own
	}
	defaults.Limits.OpenFiles, defaults.Limits.Output = 0, 1 // OpenFiles: as many as this process may have
	for _, tc := range []struct {
		name    string
		args    []string
		change  func(*runtime.Options)
		timeout time.Duration
	}{
		{"none", nil, func(*runtime.Options) {}, 30 * time.Second},
		{"json keeps output", []string{"--json"}, func(o *runtime.Options) { o.Limits.Output = 16 << 20 }, 30 * time.Second},
		{"max-output", []string{"--json", "--max-output", "5k"}, func(o *runtime.Options) { o.Limits.Output = 5 << 10 }, 30 * time.Second},
		{"timeout", []string{"--timeout", "5s"}, func(*runtime.Options) {}, 5 * time.Second},
		{"no timeout", []string{"--timeout", "0"}, func(*runtime.Options) {}, -1},
		{"limits", []string{"--memory", "1g", "--cpus", "0.5", "--cpu-time", "2m", "--pids", "7", "--open-files", "99", "--disk", "4096", "--files", "500"},
			func(o *runtime.Options) {
				l := &o.Limits
				l.Memory, l.CPUs, l.CPUTime, l.Pids, l.OpenFiles, l.Disk, l.Files = 1<<30, 0.5, 2*time.Minute, 7, 99, 4096, 500
			}, 30 * time.Second},
		{"env", []string{"--env", "A=1", "--env", "B=x=y", "--env", "A=", "--env", "C= "},
			func(o *runtime.Options) { o.Env = map[string]string{"A": "", "B": "x=y", "C": " "} }, 30 * time.Second},
		{"places", []string{"--cwd", "/srv", "--hostname", "h", "--image", "i", "--store", "s"},
			func(o *runtime.Options) { o.Cwd, o.Hostname, o.Image, o.Store = "/srv", "h", "i", "s" }, 30 * time.Second},
		{"launcher", []string{"--launcher", "zygote"}, func(o *runtime.Options) { o.Launcher = runtime.LauncherZygote }, 30 * time.Second},
		{"native", []string{"--isolation", "native", "--launcher", "zygote"}, func(o *runtime.Options) { o.Launcher = runtime.LauncherZygote }, 30 * time.Second},
		{"runc", []string{"--isolation", "runc"}, func(o *runtime.Options) {
			o.Isolation, o.OCI.Runtime = runtime.IsolationOCI, "runc"
		}, 30 * time.Second},
		{"OCI runtime", []string{"--isolation", "oci=/opt/x"}, func(o *runtime.Options) {
			o.Isolation, o.OCI.Runtime = runtime.IsolationOCI, "/opt/x"
		}, 30 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var f fake
			got := f.call(t, "", append(append([]string{"run"}, tc.args...), "-e", "1")...)
			if got.code != 0 || got.stderr != "" {
				t.Fatalf("got %+v", got)
			}
			want := defaults
			tc.change(&want)
			if diff := cmp.Diff(want, f.options, cmpopts.IgnoreFields(runtime.Options{}, "Progress"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
			if f.run.Timeout != tc.timeout {
				t.Errorf("timeout %v, want %v", f.run.Timeout, tc.timeout)
			}
			if f.closed != 1 {
				t.Errorf("closed %d times", f.closed)
			}
		})
	}
}

func TestRunFailures(t *testing.T) {
	for _, tc := range []struct {
		name string
		fake fake
		want string
	}{
		{"create", fake{createErr: errors.New("gaol: create: mount /workspace: no such device")}, "gaol: create: mount /workspace: no such device"},
		{"no root", fake{createErr: fmt.Errorf("gaol: create: %w", syscall.EPERM)}, "`gaol doctor` prints the missing features"},
		{"no image", fake{createErr: fmt.Errorf("gaol: create: %w", rootfs.ErrNotFound)}, "gaol image ls"},
		{"no snapshot", fake{createErr: fmt.Errorf("gaol: create: %w", rootfs.ErrNoSnapshot)}, "no such snapshot; `gaol snapshot ls`"},
		{"two snapshots", fake{createErr: fmt.Errorf("gaol: create: %w", rootfs.ErrAmbiguousSnapshot)}, "as `gaol snapshot ls` prints"},
		{"full disk", fake{createErr: &fs.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}}, "free some disk space"},
		{"many lines", fake{createErr: errors.Join(errors.New("one"), errors.New("two\x1b[31m"))}, "one two\\x1b[31m"},
		{"close", fake{closeErr: errors.New("gaol: close: busy")}, "close: busy"},
		{"run", fake{guest: func(context.Context, runtime.RunOptions) (*runtime.Result, error) {
			return nil, fmt.Errorf("gaol: run: %w", syscall.EPIPE)
		}}, "run: broken pipe"},
	} {
		for _, mode := range []string{"plain", "json"} {
			t.Run(tc.name+" "+mode, func(t *testing.T) {
				args := []string{"run", "-e", "1"}
				if mode == "json" {
					args = append(args, "--json")
				}
				checkFailure(t, tc.fake.call(t, "", args...), tc.want)
			})
		}
	}
}

func TestCommandNotFound(t *testing.T) {
	f := fake{guest: func(context.Context, runtime.RunOptions) (*runtime.Result, error) {
		return nil, &fs.PathError{Op: "exec", Path: "nope", Err: fs.ErrPermission}
	}}
	checkFailure(t, f.call(t, "", "run", "--command", "--", "nope"), "give a program of the image")
}

func TestExitStatus(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		res  runtime.Result
		code int
		line string
	}{
		{"success", nil, runtime.Result{}, 0, ""},
		{"exit code", nil, runtime.Result{ExitCode: 7}, 7, ""},
		{"signal", nil, runtime.Result{ExitCode: 137, Signal: "SIGKILL", Cause: runtime.CauseSignal}, 137, ""},
		{"timeout", []string{"--timeout", "1500ms"}, runtime.Result{ExitCode: 137, Cause: runtime.CauseTimeout}, 124, "longer than 1.5s; allow more with --timeout"},
		{"default timeout", nil, runtime.Result{ExitCode: 137, Cause: runtime.CauseTimeout}, 124, "longer than 30s"},
		{"memory", []string{"--memory", "65536k"}, runtime.Result{ExitCode: 137, Cause: runtime.CauseMemory}, 137, "more than 64m; allow more with --memory"},
		{"memory of a child", nil, runtime.Result{ExitCode: 1, Cause: runtime.CauseMemory}, 137, "256m"},
		{"cpu", []string{"--cpu-time", "1s"}, runtime.Result{ExitCode: 137, Cause: runtime.CauseCPU}, 137, "more than 1s of processor time; allow more with --cpu-time"},
		{"pids", nil, runtime.Result{ExitCode: 1, Cause: runtime.CausePids}, 1, "more than 64 processes and threads; allow more with --pids"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := fake{guest: returns(tc.res)}
			args := append([]string{"run", "-e", "1"}, tc.args...)
			got := f.call(t, "", args...)
			if got.code != tc.code || got.stdout != "" {
				t.Errorf("got %+v, want exit status %d", got, tc.code)
			}
			if tc.line == "" && got.stderr != "" || !strings.Contains(got.stderr, tc.line) || strings.Count(got.stderr, "\n") > 1 {
				t.Errorf("standard error has %q, want one line with %q", got.stderr, tc.line)
			}
			if inJSON := f.call(t, "", append(args, "--json")...); inJSON.code != tc.code || inJSON.stderr != "" {
				t.Errorf("with --json: got %+v, want exit status %d and no line", inJSON, tc.code)
			}
		})
	}
}

// prints returns a guest that prints to both streams and reads all its input.
func prints(stdout, stderr string) func(context.Context, runtime.RunOptions) (*runtime.Result, error) {
	return func(_ context.Context, o runtime.RunOptions) (*runtime.Result, error) {
		if o.Stdin != nil {
			in, err := io.ReadAll(o.Stdin)
			if err != nil {
				return nil, err
			}
			stdout += string(in)
		}
		for _, b := range []byte(stdout) {
			o.OnStdout([]byte{b})
		}
		o.OnStderr([]byte(stderr))
		return &runtime.Result{ExitCode: 3}, nil
	}
}

func TestRunPassesOn(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want outcome
	}{
		{"both streams", nil, outcome{3, "out\xff\n", "err"}},
		{"stdin", []string{"--stdin"}, outcome{3, "out\xff\nin", "err"}},
		{"cut", []string{"--max-output", "3"}, outcome{3, "out", "errgaol: standard output was cut; allow more than --max-output 3\n"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := fake{guest: prints("out\xff\n", "err")}
			got := f.call(t, "in", append([]string{"run", "-e", "1"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// broken is an output that cannot be written to.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: b.err}
}

// A failure to write cancels the run: the guest waits for that.
func TestBrokenOutput(t *testing.T) {
	guest := func(ctx context.Context, o runtime.RunOptions) (*runtime.Result, error) {
		if o.OnStdout != nil {
			o.OnStdout([]byte("y\n"))
			<-ctx.Done()
		}
		return &runtime.Result{ExitCode: 137, Cause: runtime.CauseCanceled}, ctx.Err()
	}
	for _, tc := range []struct {
		err  error
		code int
		want string
	}{
		{syscall.EPIPE, 128 + int(syscall.SIGPIPE), ""},
		{syscall.ENOSPC, report.ExitFailure, "gaol: write standard output: no space left on device; send it to where there is room for it\n"},
	} {
		for _, args := range [][]string{{"run", "-e", "1"}, {"run", "-e", "1", "--json"}} {
			t.Run(tc.err.Error()+" "+strings.Join(args, " "), func(t *testing.T) {
				f := fake{guest: guest}
				var stderr strings.Builder
				a := &app{stdin: strings.NewReader(""), stdout: broken{tc.err}, stderr: &stderr, create: f.create}
				if code := a.main(t.Context(), args); code != tc.code || stderr.String() != tc.want || f.closed != 1 {
					t.Errorf("exit status %d, %q, closed %d times; want %d, %q, once", code, &stderr, f.closed, tc.code, tc.want)
				}
			})
		}
	}
}

func TestRunInterrupted(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			f := fake{guest: func(ctx context.Context, _ runtime.RunOptions) (*runtime.Result, error) {
				cancel(signalError{sig})
				<-ctx.Done()
				return &runtime.Result{ExitCode: 137, Cause: runtime.CauseCanceled}, fmt.Errorf("gaol: run: %w", context.Cause(ctx))
			}}
			got := f.callContext(ctx, "", "run", "-e", "1")
			if want := (outcome{code: 128 + int(sig)}); got != want || f.closed != 1 {
				t.Errorf("got %+v, closed %d times; want %+v, once", got, f.closed, want)
			}
		})
	}
}

// A signal ends gaol while it waits for code.
func TestInterruptedReading(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(signalError{syscall.SIGINT})
	r, w := io.Pipe()
	defer w.Close()
	a := &app{stdin: r, stdout: io.Discard, stderr: io.Discard, create: new(fake).create}
	if code := a.main(ctx, []string{"run", "-"}); code != 130 {
		t.Errorf("exit status %d, want 130", code)
	}
}

func TestInterleaveFlag(t *testing.T) {
	f := fake{guest: prints("out", "err")}
	got := f.call(t, "", "run", "--json", "--interleave", "-e", "1")
	if !strings.Contains(got.stdout, `"output":[{"stream":"stdout","text":"out"},{"stream":"stderr","text":"err"}]`) || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	if got = f.call(t, "", "run", "--json", "--interleave", "--max-output", "1", "-e", "1"); !strings.Contains(got.stdout, `"text":"o"},{"stream":"stderr","text":"e"}]`) {
		t.Errorf("%+v", got)
	}
	checkFailure(t, f.call(t, "", "run", "--interleave", "-e", "1"), "--interleave goes with --json")
}
