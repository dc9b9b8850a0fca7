package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"gaol/runtime"
)

const replLong = `Evaluate what is typed, line by line, in one process of Node in a jail: what a line
declares is there for those after it, and const and let may be declared again. Code
may be JavaScript, TypeScript or JSX; import, require and await stand anywhere, and a
promise is awaited. Input whose brackets are open goes on in the next line. _ is the
value of the last input, until the code has a variable of that name.

At a terminal there are a history ($XDG_STATE_HOME/gaol/repl_history; a line that
begins with a space is not kept; of several lines ␤ parts them), names that Tab completes, Ctrl-C for what runs or
is typed, and Ctrl-D for the end. What can't be stopped alone, such as a callback that
never returns, costs the process: that is said, and another one begins without the
variables. There is no time limit unless --timeout is given.

Where standard input is no terminal, its lines are taken the same way, without
prompts: values and lines of console.log come on standard output, errors on standard
error. --timeout bounds each input, by default to 30 s.

--globals names a file with a JSON object: each member is a variable from the start.

Exit status: that of process.exit, if the code called it; else 0 at a terminal, and
without one 1 if there was an error, 124 or 137 if the process was lost by running
too long, or by its memory; 125 when gaol itself failed.

Flags of the world that the code finds are those of gaol run.`

const replExample = `  gaol repl
  gaol repl --mount ./data:/workspace/data --node-modules ./node_modules
  printf 'const a = 6\na * 7\n' | gaol repl`

// replFlags are those of gaol repl.
type replFlags struct {
	*runFlags
	globals   string
	noHistory bool
}

func (a *app) replCommand() *cobra.Command {
	f := &replFlags{runFlags: defaultRunFlags()}
	cmd := &cobra.Command{
		Use:                   "repl [flags]",
		Short:                 "Evaluate code line by line in a jail",
		Long:                  replLong,
		Example:               replExample,
		Args:                  usageArgs(noArgs),
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd.Context()); err != nil {
				return usageError(cmd.CommandPath(), err)
			}
			globals, err := readGlobals(cmd.Context(), f.globals)
			if err != nil {
				return err
			}
			return a.repl(cmd.Context(), globals, f)
		},
	}
	f.set = cmd.Flags()
	f.set.SortFlags = false
	f.set.StringVar(&f.globals, "globals", "", "`FILE` with a JSON object whose members are variables")
	f.set.BoolVar(&f.noHistory, "no-history", false, "neither read nor keep a history of what is typed")
	f.addLimits()
	timeout := f.set.Lookup("timeout")
	timeout.Usage, timeout.DefValue = "time each input may take; 0 for no limit (default: none at a terminal, else 30s)", ""
	f.addWorld(cmd)
	return cmd
}

func (f *replFlags) check(ctx context.Context) error {
	if f.set.Changed("globals") && f.globals == "" {
		return errors.New("--globals is empty")
	}
	return f.runFlags.check(ctx)
}

// What a cell's lines are bounded to.
const (
	replLogs      = 10_000
	replLogLength = 2_000
)

// repl has the user work at a runtime made for it, and sets a.exit.
func (a *app) repl(ctx context.Context, globals map[string]any, f *replFlags) error {
	o := f.options()
	o.Limits.Output = 0 // what is printed becomes lines
	if isTerminal(a.stderr) {
		o.Progress = a.stderr
	}
	sb, err := a.create(ctx, o)
	if err != nil {
		return err
	}
	a.tell(f.notes(sb))
	s := &session{
		sandbox: sb, denied: f.denied,
		context: runtime.ContextOptions{Globals: globals, IdleTimeout: -1, LastValue: true},
		cell:    runtime.EvaluateOptions{Timeout: f.runTimeout(), MaxLogs: replLogs, MaxLogLength: replLogLength, Form: runtime.ResultText},
	}
	if interactive(a) {
		err = a.converse(ctx, s, f)
	} else {
		err = a.feed(ctx, s)
	}
	a.exit = s.exit
	return errors.Join(err, sb.Close())
}

// interactive reports whether a person sits at both ends.
func interactive(a *app) bool {
	in, ok := a.stdin.(*os.File)
	return ok && isTerminal(in) && isTerminal(a.stdout) && os.Getenv("TERM") != "dumb"
}

// feed evaluates what standard input has.
func (a *app) feed(ctx context.Context, s *session) error {
	s.out = &pipes{app: a}
	return s.work(ctx, newLineReader(ctx, a.stdin))
}

// converse has a person type.
func (a *app) converse(ctx context.Context, s *session, f *replFlags) error {
	own, err := takeTerminal(a.stdin)
	if err != nil {
		return err
	}
	if !f.set.Changed("timeout") {
		s.cell.Timeout = -1
	}
	var past *history
	if !f.noHistory {
		if past, err = openHistory(); err != nil {
			fmt.Fprintln(a.stderr, "gaol: there is no history: "+oneLine(err.Error()))
		}
		defer past.close()
	}
	if err := own.makeRaw(); err != nil {
		return err
	}
	defer own.restore()
	d := newDesk(ctx, own.file, a.stdout, past)
	defer d.leave()
	defer own.follow(d.resize)()
	if os.Getenv("NO_COLOR") == "" {
		s.cell.Form = runtime.ResultColors
	}
	s.context.OnLog = d.log
	s.complete = time.Second
	s.out, d.names = d, s.names
	d.note("Welcome to gaol " + version + ", Node.js in a jail. Type .help for more information.")
	return s.work(ctx, d)
}
