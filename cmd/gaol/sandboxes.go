package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/runtime/client"
)

// serverCommand adds --server to cmd, and makes it do something with a connection to a server.
func serverCommand(cmd *cobra.Command, do func(ctx context.Context, c *client.Client, args []string) error) *cobra.Command {
	var socket string
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		c, err := dial(cmd.Context(), cmp.Or(socket, client.Socket()))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		return do(cmd.Context(), c, args)
	}
	flags.AddServer(cmd, &socket, "server with the sandboxes, by default the one of this machine")
	return cmd
}

// psCommand lists sandboxes.
func (a *app) psCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ps", Short: "List your sandboxes on a gaol server",
		Long: `List your sandboxes on a gaol server: programs have created them with its API. Other
users' sandboxes are not shown, not even to root.

The time is when a sandbox is deleted unless it is used before.`,
		Example: "  gaol ps\n  gaol ps --json",
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return serverCommand(cmd, func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Sandboxes(ctx)
		if missing, ok := errors.AsType[*client.MissingError](err); ok {
			report.Print(a.stderr, missing)
		} else if err != nil {
			return err
		}
		lines := []string{"SANDBOX\tCREATED\tEXPIRES\tSTATE\tPROCESSES"}
		for _, sb := range list {
			state := "active"
			if sb.Paused {
				state = "paused"
			}
			lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s\t%d", sb.ID, sb.Created.Local().Format(time.DateTime), sb.Expires.Local().Format(time.DateTime), state, sb.Processes))
		}
		return a.printEither(asJSON, list, report.Table(lines))
	})
}

// stopCommand deletes sandboxes.
func (a *app) stopCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "stop SANDBOX...", Short: "Delete sandboxes on a gaol server", Args: cobra.MinimumNArgs(1),
		Long:    "Kill all that runs in sandboxes on a gaol server, and delete them with their files.",
		Example: "  gaol stop sb-4pj7gsn2vyd3qzlkbcyx5mtdea",
	}
	return eachSandbox(cmd, func(ctx context.Context, sb *client.Sandbox) error {
		if _, err := sb.Info(ctx); err != nil { // to Close, a sandbox that does not exist is closed
			return err
		}
		return sb.Close()
	})
}

// eachSandbox makes cmd do something with each sandbox of its arguments.
func eachSandbox(cmd *cobra.Command, do func(context.Context, *client.Sandbox) error) *cobra.Command {
	return serverCommand(cmd, func(ctx context.Context, c *client.Client, ids []string) (err error) {
		for _, id := range ids {
			err = errors.Join(err, do(ctx, c.Sandbox(id)))
		}
		return err
	})
}

// pauseCommand pauses sandboxes.
func (a *app) pauseCommand() *cobra.Command {
	return eachSandbox(&cobra.Command{
		Use: "pause SANDBOX...", Short: "Stop all that runs in sandboxes on a gaol server, until gaol resume", Args: cobra.MinimumNArgs(1),
		Long: `Stop all processes of sandboxes on a gaol server until gaol resume. Meanwhile nothing can be
started in them. Paused sandboxes expire like others.`,
		Example: "  gaol pause sb-4pj7gsn2vyd3qzlkbcyx5mtdea",
	}, func(ctx context.Context, sb *client.Sandbox) error { return sb.Pause(ctx) })
}

// resumeCommand resumes sandboxes.
func (a *app) resumeCommand() *cobra.Command {
	return eachSandbox(&cobra.Command{
		Use: "resume SANDBOX...", Short: "Let paused sandboxes on a gaol server continue", Args: cobra.MinimumNArgs(1),
		Long:    "Let the processes of paused sandboxes on a gaol server continue.",
		Example: "  gaol resume sb-4pj7gsn2vyd3qzlkbcyx5mtdea",
	}, func(ctx context.Context, sb *client.Sandbox) error { return sb.Resume(ctx) })
}

const execLong = `Run a program of the image in a sandbox on a gaol server. Its output is passed through as it
prints it. Signals are passed on as gaol run does.

Exit status: the program's own; 124 if it ran out of time, 137 if it was killed for
memory; 125 if gaol itself failed.`

// execCommand runs a command in a sandbox.
func (a *app) execCommand() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use: "exec [flags] SANDBOX -- PROG [ARG...]", Short: "Run a command in a sandbox on a gaol server", Long: execLong, DisableFlagsInUseLine: true,
		Example: "  gaol exec sb-4pj7gsn2vyd3qzlkbcyx5mtdea -- ls -l\n  echo 'console.log(1)' | gaol exec --stdin sb-4pj7gsn2vyd3qzlkbcyx5mtdea -- node",
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
			return errors.New("want SANDBOX -- PROG [ARG...]")
		}
		return nil
	}
	f.Sandbox = flags.NewSandbox(cmd, "")
	f.Set.BoolVar(&f.json, "json", false, "print one JSON object about the run and nothing else")
	f.Set.BoolVar(&f.stdin, "stdin", false, "pass standard input to the program, instead of an empty one")
	f.AddTimeout("time limit of the run; 0 for the longest that the server allows")
	f.Set.StringVar(&f.cwd, "cwd", "", "working `DIR` in the sandbox (default: that of the sandbox)")
	return serverCommand(cmd, func(ctx context.Context, c *client.Client, args []string) error {
		return a.exec(ctx, c.Sandbox(args[0]), args[1:], f)
	})
}

// exec runs a command in a sandbox, and sets a.exit.
func (a *app) exec(ctx context.Context, sb *client.Sandbox, command []string, f *runFlags) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	streams := report.NewStreams(a.stdout, a.stderr, math.MaxInt64, cancel)
	res, err := a.runProgram(ctx, sb, &program{command: command[0], args: command[1:]}, f, streams)
	err = cmp.Or(streams.Err(), err) // a failed write has canceled the run
	if err == nil {
		return a.reportRun(res, f, streams)
	}
	if _, missing := sb.Info(ctx); missing == nil { // else err is about the sandbox
		err = adviseCommand(err)
	}
	return err
}
