package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path"
	"strings"
	"time"

	"gaol/policy"
	"gaol/runtime"
)

//go:embed submissions/*.js
var submissions embed.FS

// tests are the exercise: print the sum of the numbers in standard input.
var tests = []struct{ input, want string }{
	{"1 2 3\n", "6"},
	{"", "0"},
	{"10 -4\n5\n", "11"},
}

func main() {
	if err := run(context.Background(), os.Stdout, runtime.Options{}); err != nil {
		log.Fatal(err)
	}
}

// run grades all submissions, one after the other.
func run(ctx context.Context, out io.Writer, o runtime.Options) error {
	// Strict permissions: a solution reads its standard input and computes.
	o.Permissions = policy.Strict()
	o.Limits = runtime.Limits{
		Memory:  128 << 20,
		CPUTime: time.Second, // unlike wall-clock time, it does not depend on the machine's load
		Output:  64 << 10,
	}
	names, err := fs.Glob(submissions, "submissions/*.js")
	if err != nil {
		return err
	}
	for _, name := range names {
		code, err := submissions.ReadFile(name)
		if err != nil {
			return err
		}
		grade, err := grade(ctx, string(code), o)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-13s %s\n", path.Base(name), grade)
	}
	return nil
}

// grade runs a solution on each test. It uses one sandbox for each solution: runs of one
// sandbox share files, and so could share answers.
func grade(ctx context.Context, code string, o runtime.Options) (_ string, err error) {
	rt, err := runtime.Create(ctx, o)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	for i, test := range tests {
		res, err := rt.Exec(ctx, code, runtime.RunOptions{
			Format:        runtime.FormatDetect, // as Node treats a .js file
			Stdin:         strings.NewReader(test.input),
			Timeout:       10 * time.Second,
			OnOutputLimit: runtime.KillOnOutput,
		})
		if err != nil {
			return "", err
		}
		if v := verdict(res, test.want); v != "" {
			return fmt.Sprintf("test %d: %s", i+1, v), nil
		}
	}
	return "accepted", nil
}

// verdict says why a run fails the test, or returns an empty string.
func verdict(res *runtime.Result, want string) string {
	switch res.Cause {
	case runtime.CauseNone:
	case runtime.CauseTimeout, runtime.CauseCPU:
		return "time limit exceeded"
	case runtime.CauseMemory:
		return "memory limit exceeded"
	case runtime.CauseOutput:
		return "output limit exceeded"
	default:
		return "killed: " + string(res.Cause)
	}
	switch got := strings.TrimSpace(string(res.Stdout)); {
	case res.Error != nil:
		return "runtime error: " + res.Error.Error()
	case res.ExitCode != 0:
		return fmt.Sprintf("runtime error: exit code %d", res.ExitCode)
	case got != want:
		return fmt.Sprintf("wrong answer: %q, want %q", got, want)
	}
	return ""
}
