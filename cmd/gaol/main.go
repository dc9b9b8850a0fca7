package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"syscall"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/bench"
	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
)

func main() {
	ctx, signals := withSignals(context.Background())
	a := &app{signals: signals, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, create: createRuntime, measure: bench.Measure, server: flags.FindServer()}
	code := a.main(ctx, os.Args[1:])
	signals.stop()
	os.Exit(code)
}

// silentStatus returns the exit status of a command that ended without a message:
// because of a signal, with the status that a shell gives to a program that the
// signal killed, or because the reader of its output closed the pipe.
func silentStatus(ctx context.Context, err error) (int, bool) {
	if errors.Is(err, errStopped) {
		return 0, true
	}
	if sig, ok := errors.AsType[signalError](context.Cause(ctx)); ok {
		return report.ExitSignal + int(sig.sig), true
	}
	// Only for gaol's own output: an EPIPE from elsewhere is a failure.
	if out, ok := errors.AsType[*report.OutputError](err); ok && errors.Is(out, syscall.EPIPE) {
		return report.ExitSignal + int(syscall.SIGPIPE), true
	}
	return 0, false
}

// version is set by the Makefile with -ldflags -X.
var version = "devel"

func versionText() string {
	return fmt.Sprintf("%s (%s, %s/%s)", version, goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, as --version does",
		RunE:  func(*cobra.Command, []string) error { return a.print("gaol " + versionText() + "\n") },
	}
}
