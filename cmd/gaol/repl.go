package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/repl"
	"gaol/cmd/gaol/report"
	"gaol/runtime"
)

const replLong = `Evaluate code line by line, in one process of Node in a jail: later lines see what
earlier lines declared, and const and let may be declared again. Code may be JavaScript,
TypeScript or JSX; import, require and await may be used anywhere, and promises are
awaited. Input with open brackets continues on the next line. _ is the last value, until
the code declares a variable of that name.

On a terminal, Up and Down recall earlier input, Tab completes names, Ctrl-C abandons what
is typed or stops what runs, and Ctrl-D quits. The history is kept in
$XDG_STATE_HOME/gaol/repl_history, without input that begins with a space; ␤ separates the
lines of one input. Code that cannot be stopped alone, such as a callback that never
returns, ends the process: a message reports it, and another process starts without the
variables.

If standard input is not a terminal, its lines are evaluated without prompts: values and
lines of console.log are printed on standard output, errors on standard error.

Exit status: that of process.exit, if the code called it; else 0 on a terminal; without one
1 if there was an error, or 124 or 137 if the process was lost because it ran too long or
used too much memory; 125 if gaol itself failed.`

const replExample = `  gaol repl
  gaol repl --mount ./data:/workspace/data --node-modules ./node_modules
  printf 'const a = 6\na * 7\n' | gaol repl`

// replFlags are the flags of gaol repl.
type replFlags struct {
	flags.Sandbox
	globals   string
	noHistory bool
}

func (a *app) replCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "repl [flags]",
		Short:                 "Evaluate code line by line in a jail",
		Long:                  replLong,
		Example:               replExample,
		DisableFlagsInUseLine: true,
	}
	f := &replFlags{Sandbox: flags.NewSandbox(cmd, a.server)}
	cmd.Args = cobra.MatchAll(cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return f.Check(cmd.Context()) })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.repl(cmd.Context(), f) }
	f.Set.Var(flags.Text(&f.globals), "globals", "`FILE` with a JSON object whose members become variables")
	f.Set.BoolVar(&f.noHistory, "no-history", false, "neither read nor write the history")
	f.AddTimeout("time limit of each input; 0 for none (default: none at a terminal, else 30s)")
	f.Set.Lookup("timeout").DefValue = ""
	f.AddLimits()
	f.AddEnvironment(cmd)
	flags.AddServer(cmd, &f.Server, serverUsage)
	return cmd
}

// repl evaluates lines in a new sandbox, and sets a.exit.
func (a *app) repl(ctx context.Context, f *replFlags) error {
	globals, err := flags.Globals(ctx, f.globals)
	if err != nil {
		return err
	}
	sb, err := a.open(ctx, &f.Sandbox, f.Options(), false)
	if err != nil {
		return err
	}
	o := repl.Options{
		Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr,
		// A dumb terminal, such as a shell buffer of Emacs, edits lines itself.
		Terminal:   report.IsTerminal(a.stdin) && report.IsTerminal(a.stdout) && os.Getenv("TERM") != "dumb",
		NoHistory:  f.noHistory,
		Welcome:    "Welcome to gaol " + version + ", Node.js in a jail. Type .help for more information.",
		NewContext: sb.newContext,
		Globals:    globals,
		Timeout:    f.Timeout(),
		Denials: func(res *runtime.Result) []string {
			// No more than are shown: the note about the others would name --json, which repl lacks.
			res.Denials = res.Denials[:min(len(res.Denials), flags.MaxDenials)]
			return f.Denials(res)
		},
	}
	if o.Terminal && !f.Set.Changed("timeout") { // the user can press Ctrl-C
		o.Timeout = -1
	}
	a.exit, err = repl.Run(ctx, o)
	return errors.Join(err, sb.Close())
}
