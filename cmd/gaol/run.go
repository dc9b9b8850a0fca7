package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"gaol/runtime"
)

const runUse = `run [flags] FILE [-- ARG...]
  gaol run [flags] -e CODE [-- ARG...]
  gaol run [flags] [-] [-- ARG...] < CODE
  gaol run [flags] --command -- PROG [ARG...]`

const runLong = `Run one program in a jail of its own, made for it and gone after it.

FILE is JavaScript, TypeScript or JSX, by its ending. Its module format is found as
Node does: by the ending (.mjs, .cjs, .mts, .cts), by the type in the nearest
package.json on the host, or else by its syntax. Code from -e and from standard
input, which is read too where it is piped and nothing else is named, is an ES module,
unless it uses what only CommonJS has, such as require, and nothing that only ES
modules have. --format decides otherwise. No tsconfig.json is read: see go doc
gaol/runtime.RunOptions.

FILE is read on the host; the program sees nothing else of the host: no files, no
environment, no network.

What it may do within its own world is said by --preset, over which --permissions
goes scope by scope; --allow-net adds to the network scope of the preset. gaol
policy tells more. A failed program that was denied something gets up to five
lines on standard error that say what, and what would allow it.

What it prints goes through as it comes. The value it hands to
globalThis.__return is shown by --json only.

With --tty the program has a terminal of its own, which this one stands for: all
keys go to the program, and what it prints, escape sequences too, comes here.

Exit status: the program's own; 124 when it ran out of time, 137 when it was
killed for memory, each with a line on standard error that says so; 125 when
gaol itself failed. With --json, the object's "cause" says why a run ended and
standard error stays empty, unless gaol itself failed: then there is no object.

Sizes are bytes, or end in k, m or g (powers of 1024).`

const runExample = `  gaol run prog.mjs
  gaol run prog.mjs -- --flag-of-the-program input.txt
  gaol run --json -e 'globalThis.__return({answer: 6 * 7})'
  echo 'console.log(1 + 1)' | gaol run
  seq 10 | gaol run --stdin sum.mjs
  gaol run --timeout 5s --memory 512m --cpus 2 --env LANG=de_DE.UTF-8 prog.mjs
  gaol run --preset strict prog.mjs
  gaol run --preset workspace --allow-net 'tcp://localhost:*' server.mjs
  gaol run --command -- npm --version
  gaol run --tty --command -- sh`

func (a *app) runCommand() *cobra.Command {
	f := defaultRunFlags()
	cmd := &cobra.Command{
		Use:                   runUse,
		Short:                 "Run a program in a jail",
		Long:                  runLong,
		Example:               runExample,
		DisableFlagsInUseLine: true, // runUse shows them
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.program(cmd, args, a.stdin)
			if err != nil {
				return err
			}
			return a.execute(cmd.Context(), p, f)
		},
	}
	f.add(cmd)
	return cmd
}

// execute runs p in a runtime made for it, hands on what comes of it, and sets
// a.exit.
func (a *app) execute(ctx context.Context, p *program, f *runFlags) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	o := f.options()
	if isTerminal(a.stderr) { // else it would mix with what the program prints there
		o.Progress = a.stderr
	}
	sb, err := a.create(ctx, o)
	if err != nil {
		return err
	}
	if !f.json {
		a.tell(f.notes(sb))
	}
	streams := a.passOn(f, cancel)
	res, err := a.perform(ctx, p, f, sb, streams)
	if err == nil && f.save != "" {
		_, err = sb.Snapshot(ctx, runtime.SnapshotOptions{Name: f.save})
	}
	// Closed before the result is reported: a jail that can't be taken down is
	// gaol's failure, and after a failure no object is printed.
	closeErr := sb.Close()
	if failed := streams.err(); failed != nil {
		err = failed // which canceled the run
	}
	if err := errors.Join(err, closeErr); err != nil {
		return err
	}
	return a.report(res, f, streams)
}

// perform has the program run, on a terminal or not.
func (a *app) perform(ctx context.Context, p *program, f *runFlags, sb sandbox, streams *streams) (*runtime.Result, error) {
	if f.tty {
		return a.interact(ctx, p, f, sb)
	}
	o := runtime.RunOptions{Name: p.name, Format: p.format, Args: p.args, Timeout: f.runTimeout()}
	if f.stdin {
		o.Stdin = a.stdin
	}
	streams.attach(&o)
	return p.run(ctx, sb, o)
}

// run starts the program, whichever kind it is.
func (p *program) run(ctx context.Context, sb sandbox, o runtime.RunOptions) (*runtime.Result, error) {
	if p.command == "" {
		return sb.Run(ctx, p.code, o)
	}
	o.Name, o.Args = "", nil // they are code's
	res, err := sb.Command(ctx, p.command, p.args, o)
	return res, adviseProgram(err)
}

// adviseProgram says what to do about a program that there is none of.
func adviseProgram(err error) error {
	// Both are about the guest's tree, where the host's privileges don't help.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return &advisedError{err, "give a program of the image, or the path of one in the guest"}
	}
	return err
}

// report prints the object or the lines about res, and sets a.exit.
func (a *app) report(res *runtime.Result, f *runFlags, streams *streams) error {
	a.exit = exitStatus(res)
	if f.json {
		o := newOutput(res)
		if streams.both != nil {
			o.Output = streams.both.end()
		}
		return a.printJSON(o)
	}
	a.tell(slices.Concat(streams.cuts(), f.verdict(res), f.denied(res)))
	return nil
}

// tell prints lines of gaol's own on standard error.
func (a *app) tell(lines []string) {
	for _, line := range lines {
		fmt.Fprintln(a.stderr, "gaol: "+line)
	}
}

// exitStatus gives gaol's own exit status for a run.
func exitStatus(res *runtime.Result) int {
	switch res.Cause {
	case runtime.CauseTimeout:
		return exitTimeout
	case runtime.CauseMemory:
		return exitMemory
	default:
		return res.ExitCode
	}
}

// verdicts says, by cause, what happened, and which flag would have prevented it.
var verdicts = map[runtime.Cause]struct{ what, flag string }{
	runtime.CauseTimeout: {"the program was stopped: it ran longer than %s", "timeout"},
	runtime.CauseMemory:  {"the program was killed for memory: it needed more than %s", "memory"},
	runtime.CauseCPU:     {"the program was stopped: it used more than %s of processor time", "cpu-time"},
	runtime.CausePids:    {"the program failed: it needed more than %s processes and threads", "pids"},
}

// verdict gives the line about a run that a limit ended; none for others.
func (f *runFlags) verdict(res *runtime.Result) []string {
	v, ok := verdicts[res.Cause]
	if !ok {
		return nil
	}
	limit := f.set.Lookup(v.flag).Value
	return []string{fmt.Sprintf(v.what, limit) + "; allow more with --" + v.flag}
}
