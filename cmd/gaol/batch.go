package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/runtime/resultjson"
)

const submitLong = `Submit a program to a gaol server as a batch run, and print its key. The server runs it in a new
sandbox when it is its turn, and again if a machine is lost. It keeps the result for an hour: see
gaol result. Program and flags are as for gaol run --server.

It is safe to repeat a command with the same --key: while the server has that batch run, nothing is
submitted, and a command with another program or other flags fails. Signals end no batch run.`

// submitCommand submits batch runs.
func (a *app) submitCommand() *cobra.Command {
	key, wait := "", false
	cmd := &cobra.Command{
		Use: "submit [flags] FILE|- [-- ARG...]", Short: "Submit a batch run to a gaol server", Long: submitLong, Args: cobra.ArbitraryArgs, DisableFlagsInUseLine: true,
		Example: "  gaol submit prog.mjs\n  gaol submit --key nightly-2026-11-28 --timeout 10m --wait prog.mjs\n  gaol submit --command -- npm --version",
	}
	f := &runFlags{Sandbox: flags.NewSandbox(cmd, client.Socket())} // for its checks, any server
	f.Set.Var(flags.Text(&key), "key", "`KEY` of the batch run: at most 255 letters, digits and ._:~@+=- (default: a random one)")
	f.Set.BoolVar(&wait, "wait", false, "wait until the batch run is done, and print its result as gaol result does")
	f.add(cmd)
	return serverCommand(cmd, func(ctx context.Context, c *client.Client, args []string) error {
		p, err := f.program(cmd, args, a.stdin)
		if err != nil {
			return err
		}
		run, err := a.submit(ctx, c, p, f, key)
		if err == nil && !wait {
			return a.printEither(f.json, run, run.Key+"\n")
		} else if err == nil {
			run, err = c.WaitBatchRun(ctx, run.Key)
		}
		return a.reportBatchRun(run, err, f)
	})
}

// submit submits p.
func (a *app) submit(ctx context.Context, c *client.Client, p *program, f *runFlags, key string) (*client.BatchRun, error) {
	sb := remoteOptions(&f.Sandbox, f.Options())
	run := runtime.RunOptions{Name: p.Name, Format: p.Format, Args: p.args, Env: sb.Env, Cwd: sb.Cwd, Permissions: sb.Permissions, Timeout: f.Timeout()}
	sb.Env, sb.Cwd, sb.Permissions = nil, "", policy.Permissions{}
	sb.Limits.Output, sb.Limits.Value = 0, 0 // the most that a batch run can have
	o := client.SubmitOptions{Key: key, Run: run, Sandbox: sb}
	if f.stdin {
		text, err := flags.Read(ctx, a.stdin, "standard input", flags.MaxCode)
		if err != nil {
			return nil, err
		}
		o.Stdin = string(text)
	}
	if p.command != "" {
		return c.SubmitCommand(ctx, p.command, p.args, o)
	}
	return c.Submit(ctx, p.Code, o)
}

const resultLong = `Print the result of a batch run, as gaol run does. The output has at most 256k of each stream.

Exit status: that of gaol run; 75 if the batch run is not done, with a line on standard error; 125
if it was canceled, or the server could not run it. With --json, standard error stays empty.`

// resultCommand prints results of batch runs.
func (a *app) resultCommand() *cobra.Command {
	var wait, cancel bool
	cmd := &cobra.Command{
		Use: "result KEY", Short: "Print the result of a batch run", Long: resultLong, Args: cobra.ExactArgs(1),
		Example: "  gaol result nightly-2026-11-28\n  gaol result --wait --json nightly-2026-11-28",
	}
	f := &runFlags{Sandbox: flags.NewSandbox(cmd, "")}
	f.Set.BoolVar(&wait, "wait", false, "wait until the batch run is done")
	f.Set.BoolVar(&cancel, "cancel", false, "end the batch run unless it is done, instead of printing it")
	f.Set.BoolVar(&f.json, "json", false, "print one JSON object about the batch run, also while it is not done, and nothing else")
	return serverCommand(cmd, func(ctx context.Context, c *client.Client, args []string) error {
		get := c.BatchRun
		if cancel {
			_, err := c.CancelBatchRun(ctx, args[0])
			return adviseServer(err)
		} else if wait {
			get = c.WaitBatchRun
		}
		run, err := get(ctx, args[0])
		return a.reportBatchRun(run, err, f)
	})
}

// exitNotDone is the exit status for a batch run that is not done: EX_TEMPFAIL of sysexits.h.
const exitNotDone = 75

// reportBatchRun prints a batch run, or returns err, and sets a.exit.
func (a *app) reportBatchRun(run *client.BatchRun, err error, f *runFlags) error {
	note := ""
	switch {
	case err != nil:
		return adviseServer(err)
	case run.State != resultjson.BatchDone:
		a.exit, note = exitNotDone, "the batch run is "+string(run.State)+": --wait waits until it is done"
	case run.Error != nil:
		a.exit, note = report.ExitFailure, "the server could not run it: "+report.OneLine(run.Error.Detail)
	case run.Result.Cause == runtime.CauseCanceled || run.Result.Cause == runtime.CauseLost:
		a.exit, note = report.ExitFailure, "the batch run was "+string(run.Result.Cause)
	case f.json:
		a.exit = report.Status(run.Result)
	default:
		if t := run.Result.Truncated; t.Stdout || t.Stderr {
			note = "the output was cut: a batch run keeps at most 256k of each stream"
		}
		err = cmp.Or(report.Write(a.stdout, "standard output", run.Result.Stdout), report.Write(a.stderr, "standard error", run.Result.Stderr), a.reportRun(run.Result, f, &report.Streams{}))
	}
	if f.json {
		err = report.JSON(a.stdout, run)
	} else if note != "" {
		report.Notes(a.stderr, note)
	}
	return err
}
