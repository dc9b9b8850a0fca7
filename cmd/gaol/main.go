package main

import (
	"context"
	"io"
	"os"
)

func main() {
	ctx, stop := withSignals(context.Background())
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole command: it gives back the exit status. When ctx ends with
// a [signalError] as its cause, the status is the one a shell gives to a
// program that this signal killed.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, create: createRuntime, measure: measure}
	return a.main(ctx, args)
}
