package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/publish"
	"gaol/cmd/gaol/report"
	"gaol/runtime"
)

const runUse = `run [flags] FILE|DIR [-- ARG...]
  gaol run [flags] -e CODE [-- ARG...]
  gaol run [flags] [-] [-- ARG...] < CODE
  gaol run [flags] --command -- PROG [ARG...]`

var runLong = `Run one program in a jail that is created for it and removed after it.

FILE is JavaScript, TypeScript or JSX. Its module format is found as Node does: from its
ending, from the type in the nearest package.json on the host, or else from its syntax.
Code from -e is CommonJS, and code from standard input an ES module, unless its syntax is
that of the other format. Standard input is read if it is piped and nothing else is named.
Of the nearest tsconfig.json, only experimentalDecorators is used: see
go doc gaol/runtime.RunOptions.

The program sees nothing else of the host: no files, no environment, and of the network its
own localhost. If FILE is a folder, the program sees that, and is the main of its
package.json, or index.

A scope in --permissions replaces the preset's; --allow-net adds to the network scope:
see gaol policy. If a program fails after a denial, up to five lines on standard error name
the denials, and how to allow them.

Output is passed through. Only --json shows the value passed to globalThis.__return.

--publish 8080:3000 leads connections to port 8080 of this machine, on 127.0.0.1, to a server
on port 3000 of the program; 0.0.0.0:8080:3000 on all addresses. A connection that comes
before the program listens waits for 10 seconds at most. A port accepts at most 256.

Without root, gaol uses the server of this machine if its socket exists. Its operator decides
which images, permissions and isolations are allowed, and the longest time. A server has no
--` + strings.Join(flags.NotOnServer, ", --") + `.

The first SIGINT or SIGTERM goes to the program, which has 5 seconds to end by itself; a
second signal, or SIGHUP, kills it. Its descendants do not get the signal, and end with it.

Exit status: the program's own; 124 if it ran out of time, 137 if it was killed for memory,
each with a line on standard error; 125 if gaol itself failed. With --json, the object's
"cause" is why a run ended, and standard error stays empty, unless --publish chose a port, or
gaol itself failed: then there is no object.`

const runExample = `  gaol run prog.mjs
  gaol run prog.mjs -- --flag-of-the-program input.txt
  gaol run --json -e 'globalThis.__return({answer: 6 * 7})'
  echo 'console.log(1 + 1)' | gaol run
  seq 10 | gaol run --stdin sum.mjs
  gaol run --timeout 5s --memory 512m --cpus 2 --env LANG=de_DE.UTF-8 prog.mjs
  gaol run --with-folder src/main.ts
  gaol run --preset strict prog.mjs
  gaol run --preset workspace --allow-net api.example.com server.mjs
  gaol run --publish 8080:3000 --timeout 0 server.mjs
  gaol run --command -- npm --version
  gaol run --tty --command -- sh
  gaol run --server default -e 'console.log(1 + 1)'`

// runFlags are the flags of gaol run.
type runFlags struct {
	flags.Sandbox
	json, stdin, command, tty, interleave bool
	withFolder                            bool
	file, code, save                      string
	cwd                                   string // of gaol exec
	format                                runtime.ModuleFormat
	maxOutput                             int64
	interleaved                           report.Interleaved
}

func (a *app) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   runUse,
		Short:                 "Run a program in a jail",
		Long:                  runLong,
		Example:               runExample,
		Args:                  cobra.ArbitraryArgs,
		DisableFlagsInUseLine: true, // runUse shows them
	}
	f := &runFlags{Sandbox: flags.NewSandbox(cmd, a.server), maxOutput: runtime.DefaultLimits().Output}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := f.program(cmd, args, a.stdin)
		if err != nil {
			return err
		}
		return a.run(cmd.Context(), p, f)
	}
	f.add(cmd)
	set := f.Set
	set.BoolVar(&f.withFolder, "with-folder", false, "show the folder of FILE, read-only, at "+folderDir+", which is the working directory unless --cwd names another")
	set.BoolVar(&f.interleave, "interleave", false, "with --json, also list the output of both streams in the order in which it was read")
	set.BoolVar(&f.tty, "tty", false, "connect the program to this terminal; the only time limit is then that of --timeout, if given")
	set.Var(flags.Size(&f.maxOutput), "max-output", "bytes of each output stream that --json keeps; if given without --json, that are passed through")
	set.Var(flags.Text(&f.save), "save", "take a snapshot called `NAME` when the program has ended, whatever its exit status")
	f.AddPublish()
	flags.AddServer(cmd, &f.Server, serverUsage)
	return cmd
}

// add defines the flags that gaol run and gaol submit share.
func (f *runFlags) add(cmd *cobra.Command) {
	f.Set.StringVarP(&f.code, "eval", "e", "", "run `CODE` instead of a file")
	flags.Formats.Add(cmd, &f.format, "format", "module format of the code: esm, cjs, or auto to derive it from name and syntax")
	f.Set.BoolVar(&f.command, "command", false, "run a program of the image, named after --, instead of code")
	f.Set.BoolVar(&f.json, "json", false, "print one JSON object about the run and nothing else")
	f.Set.BoolVar(&f.stdin, "stdin", false, "pass standard input to the program, instead of an empty one")
	f.AddTimeout("time limit of the run; 0 for none, or for the longest that a server allows; with --preset npm the default is at least 5m")
	f.AddLimits()
	f.AddEnvironment(cmd)
}

// run runs p in a new sandbox, reports the result, and sets a.exit. The snapshot of
// --save is taken whatever the exit status, which may mean something other than failure.
func (a *app) run(ctx context.Context, p *program, f *runFlags) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o := f.Options()
	o.Limits.Output = 1 // output is passed through, and the runtime's copy is not used
	if f.json {
		o.Limits.Output = f.maxOutput
	}
	sb, err := a.open(ctx, &f.Sandbox, o, f.json)
	if err != nil {
		return err
	}
	streams := report.NewStreams(a.stdout, a.stderr, f.passLimit(), cancel)
	if f.interleave {
		streams = f.interleaved.Streams(f.maxOutput)
	}
	res, err := a.runIn(ctx, sb, p, f, streams)
	if err == nil && f.save != "" {
		_, err = sb.Snapshot(ctx, runtime.SnapshotOptions{Name: f.save})
	}
	// Before the result is printed: a jail that cannot be removed is a failure of gaol,
	// and after a failure there is no object.
	closeErr := errors.Join(sb.Close(), runtime.CloseIdle())
	err = cmp.Or(streams.Err(), err) // a failed write has canceled the run
	if err := errors.Join(err, closeErr); err != nil {
		return err
	}
	return a.reportRun(res, f, streams)
}

// reportRun prints what has not been printed during a run, and sets a.exit.
func (a *app) reportRun(res *runtime.Result, f *runFlags, streams *report.Streams) error {
	a.exit = report.Status(res)
	if !f.json {
		report.Notes(a.stderr, slices.Concat(streams.Notes(), f.ResultNotes(res), f.folderNote(res))...)
		return nil
	}
	if !f.interleave {
		return report.JSON(a.stdout, res)
	}
	object, err := f.interleaved.Object(res)
	if err != nil {
		return err
	}
	return report.JSON(a.stdout, object)
}

// passLimit returns how many bytes of each stream are passed through. Only --max-output
// limits them: without --json, gaol keeps nothing of them in memory.
func (f *runFlags) passLimit() int64 {
	if f.Set.Changed("max-output") {
		return f.maxOutput
	}
	return math.MaxInt64
}

// runIn runs p in sb, on a terminal or with the output passed on according to the flags.
func (a *app) runIn(ctx context.Context, sb sandbox, p *program, f *runFlags, streams *report.Streams) (*runtime.Result, error) {
	published, err := a.publish(ctx, sb, f.Published)
	if err != nil {
		return nil, err
	}
	defer published.Close()
	if f.tty {
		return a.runOnTerminal(ctx, sb, p, f)
	}
	res, err := a.runProgram(ctx, sb, p, f, streams)
	if p.command != "" {
		err = adviseCommand(err)
	}
	return res, err
}

// runner is what runs a program: a sandbox of this process or of a server.
type runner interface {
	Run(ctx context.Context, code string, o runtime.RunOptions) (*runtime.Result, error)
	Command(ctx context.Context, name string, args []string, o runtime.RunOptions) (*runtime.Result, error)
}

// runProgram runs p, and passes its output on according to the flags.
func (a *app) runProgram(ctx context.Context, sb runner, p *program, f *runFlags, streams *report.Streams) (*runtime.Result, error) {
	signals, done := a.signals.forProgram()
	defer done()
	o := runtime.RunOptions{Cwd: f.cwd, Timeout: f.Timeout(), Signals: signals}
	if f.stdin {
		o.Stdin = a.stdin
	}
	if f.interleave || !f.json {
		streams.Attach(&o)
	}
	if p.command == "" {
		o.Name, o.Format, o.Args = p.Name, p.Format, p.args
		return sb.Run(ctx, p.Code, o)
	}
	return sb.Command(ctx, p.command, p.args, o)
}

// adviseCommand adds advice for a command that is not in the guest.
func adviseCommand(err error) error {
	// The errors are about the guest's files, where the host's privileges do not help.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return report.Advise(err, "give a program of the image, or the path of one in the guest")
	}
	return err
}

// publish begins to pass connections on to the servers of sb, and prints the ports that were
// chosen for port 0.
func (a *app) publish(ctx context.Context, sb sandbox, ports []publish.Port) (*publish.Server, error) {
	s, err := publish.Listen(ctx, ports)
	if err != nil {
		return nil, err
	}
	for i, at := range s.Addresses() {
		if ports[i].Host.Port() == 0 {
			report.Notes(a.stderr, fmt.Sprintf("%v leads to port %d of the program", at, ports[i].Guest))
		}
	}
	s.Serve(sb)
	return s, nil
}
