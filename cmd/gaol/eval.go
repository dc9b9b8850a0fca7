package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/runtime"
)

const evalUse = `eval [flags] FILE
  gaol eval [flags] -e CODE
  gaol eval [flags] [-] < CODE`

const evalLong = `Evaluate a snippet as models write them: JavaScript, TypeScript or JSX, with or
without Markdown's fences; an expression, statements, or a function, which is called. It
runs in a new jail. The value of its last expression is printed as JSON on standard
output, after promises are awaited. A snippet without a value prints nothing; a value that
cannot be encoded, such as a server, causes a line on standard error. import, require and await
may be mixed, and module.exports, or an object with the exported variables, is the value if
the last expression has none. Code that uses nothing of ES modules may be sloppy, as with
node -p. Code is read from standard input if that is piped and nothing else is named.

Lines of console are printed as they come: lines of log, info and debug on standard output,
before the value, and lines of warn and error on standard error. An error is printed on
standard error, with the positions in the snippet and the lines around them.

Exit status: 0 without an error, 1 with one, 124 if the snippet ran out of time, 137 if it
was killed for memory; 125 if gaol itself failed. With --json, one object has all of
that, and standard error stays empty unless gaol itself failed.`

const evalExample = `  gaol eval -e '1 + 1'
  gaol eval -e 'async () => (await import("node:os")).cpus().length'
  echo '{"items": [1, 2, 3]}' > in.json; gaol eval --globals in.json -e 'items.map(n => n * 2)'
  gaol eval --json answer.md
  gaol eval --timeout 5s --heap 64m < snippet.ts`

// evalFlags are the flags of gaol eval.
type evalFlags struct {
	flags.Sandbox
	json          bool
	code, globals string
	options       runtime.EvaluateOptions
}

func (a *app) evalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   evalUse,
		Short:                 "Evaluate a snippet that a model wrote",
		Long:                  evalLong,
		Example:               evalExample,
		DisableFlagsInUseLine: true, // evalUse shows them
	}
	f := &evalFlags{Sandbox: flags.NewSandbox(cmd, a.server), options: runtime.EvaluateOptions{MaxOutput: 1 << 20, MaxLogs: 100, MaxLogLength: 1000}}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := f.Check(cmd.Context()); err != nil {
			return err
		}
		return f.checkWords(args, flags.IsPiped(a.stdin))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if !f.Set.Changed("eval") {
			f.code, err = flags.Code(cmd.Context(), "evaluate", append(args, "-")[0], a.stdin)
			if len(args) == 0 && err == nil && f.code == "" {
				err = report.UsageError(cmd.CommandPath(), f.checkWords(nil, false))
			}
		}
		if err != nil {
			return err
		}
		return a.eval(cmd.Context(), f)
	}
	f.Set.StringVarP(&f.code, "eval", "e", "", "evaluate `CODE` instead of a file")
	f.Set.BoolVar(&f.json, "json", false, "print one JSON object about the evaluation and nothing else")
	f.Set.Var(flags.Text(&f.globals), "globals", "`FILE` with a JSON object whose members become variables")
	f.Set.Var(flags.Size(&f.options.MaxOutput), "max-output", "bytes of JSON that its value may have")
	f.Set.Var(flags.Count(&f.options.MaxLogs), "max-logs", "lines of console to keep")
	f.Set.Var(flags.Count(&f.options.MaxLogLength), "max-log-length", "characters of one line, which then ends in …")
	f.Set.Var(flags.Size(&f.options.Heap), "heap", "JavaScript heap that it may use (default: what --memory leaves)")
	f.AddTimeout("time limit of the run; 0 for none; with --preset npm the default is at least 5m")
	f.AddLimits()
	f.AddEnvironment(cmd)
	flags.AddServer(cmd, &f.Server, serverUsage)
	return cmd
}

// checkWords rejects command lines that name no snippet, or two. Piped input is one if nothing else is named.
func (f *evalFlags) checkWords(args []string, piped bool) error {
	const noArguments = "a snippet takes no arguments; --globals gives it data"
	code := f.Set.Changed("eval")
	switch {
	case code && len(args) > 0:
		return fmt.Errorf("-e and %q exclude each other: %s", args[0], noArguments)
	case !code && len(args) == 0 && !piped:
		return errors.New("nothing to evaluate: give a FILE, - or -e CODE")
	case len(args) > 1:
		return fmt.Errorf("unexpected argument %q: %s", args[1], noArguments)
	}
	return nil
}

// eval evaluates f.code in a new sandbox, prints the evaluation, and sets a.exit.
func (a *app) eval(ctx context.Context, f *evalFlags) error {
	globals, err := flags.Globals(ctx, f.globals)
	if err != nil {
		return err
	}
	o := f.options
	o.Globals, o.Timeout = globals, f.Timeout()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sb, err := a.open(ctx, &f.Sandbox, f.Options(), f.json)
	if err != nil {
		return err
	}
	streams := report.NewStreams(a.stdout, a.stderr, math.MaxInt64, cancel)
	if !f.json {
		o.OnLog = streams.Log
	}
	e, err := sb.Evaluate(ctx, f.code, o)
	err = cmp.Or(streams.Err(), err) // a failed write has canceled the snippet
	if err := errors.Join(err, sb.Close()); err != nil {
		return err
	}
	a.exit = report.EvaluationStatus(e)
	if f.json {
		return report.JSON(a.stdout, e)
	}
	return a.printEvaluation(e, f)
}

// printEvaluation prints the rest of an evaluation for people: the lines that Streams.Log
// omitted, the value or why there is none, and the error. The value follows all lines of
// console, so that it is the last line of standard output.
func (a *app) printEvaluation(e *runtime.Evaluation, f *evalFlags) error {
	for _, l := range e.Logs {
		if l.Level == runtime.LogStderr {
			fmt.Fprintln(a.stderr, l.Text)
		}
	}
	if e.Truncated.Logs {
		report.Notes(a.stderr, fmt.Sprintf("only %d lines are shown; allow more with --max-logs", f.options.MaxLogs))
	}
	if e.Value != nil {
		if err := a.print(string(e.Value) + "\n"); err != nil {
			return err
		}
	}
	if e.NoValue != "" {
		report.Notes(a.stderr, "no value: "+report.OneLine(e.NoValue))
	}
	if e.Error != nil {
		fmt.Fprintln(a.stderr, report.ErrorText(e.Error))
		// A program that succeeded gets no lines about denials, so this one failed.
		report.Notes(a.stderr, f.Denials(&runtime.Result{ExitCode: 1, Denials: e.Denials})...)
	}
	return nil
}
