package main

import (
	"context"
	"os"
)

func main() {
	ctx, stop := withSignals(context.Background())
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, create: createRuntime, measure: measure}
	code := a.main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
