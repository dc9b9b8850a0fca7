package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/bench"
	"gaol/runtime"
)

// app is one invocation: its streams, and how it comes by a sandbox and by figures.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	create         func(context.Context, runtime.Options) (sandbox, error)
	measure        func(context.Context, bench.Options) (*bench.Report, error)

	exit int // status of a command that did its job: mostly 0, or the guest's
}

// sandbox is what the commands need of a [runtime.NodeRuntime].
type sandbox interface {
	Run(ctx context.Context, code string, o runtime.RunOptions) (*runtime.Result, error)
	evaluate(ctx context.Context, code string, o runtime.EvaluateOptions, onLog func(runtime.Log)) (*runtime.Evaluation, error)
	Command(ctx context.Context, name string, args []string, o runtime.RunOptions) (*runtime.Result, error)
	Snapshot(ctx context.Context, o runtime.SnapshotOptions) (*runtime.Snapshot, error)
	Spawn(ctx context.Context, name string, args []string, o runtime.SpawnOptions) (*runtime.Process, error)
	SpawnCode(ctx context.Context, code string, o runtime.SpawnOptions) (*runtime.Process, error)
	Context(ctx context.Context, o runtime.ContextOptions) (notebook, error)
	Missing() []string
	Limits() runtime.Limits
	Close() error
}

// notebook is what gaol repl needs of a [runtime.Context].
type notebook interface {
	Evaluate(ctx context.Context, code string, o runtime.EvaluateOptions) (*runtime.Evaluation, error)
	Complete(ctx context.Context, line string) (prefix string, names []string, err error)
	Err() error
}

// createRuntime is the real app.create.
func createRuntime(ctx context.Context, o runtime.Options) (sandbox, error) {
	rt, err := runtime.Create(ctx, o)
	if err != nil {
		return nil, err
	}
	return onlyRuntime{rt}, nil
}

// onlyRuntime is the one that a command makes: no other will want its zygote.
type onlyRuntime struct{ *runtime.NodeRuntime }

// evaluate is rt.Evaluate that tells of lines as they come.
func (rt onlyRuntime) evaluate(ctx context.Context, code string, o runtime.EvaluateOptions, onLog func(runtime.Log)) (*runtime.Evaluation, error) {
	s := rt.FollowEvaluate(ctx, code, o)
	for e := range s.Events() {
		if l, ok := e.(runtime.LogEvent); ok {
			onLog(l.Log)
		}
	}
	return s.Evaluation()
}

// Context makes one that lives as long as the runtime.
func (rt onlyRuntime) Context(ctx context.Context, o runtime.ContextOptions) (notebook, error) {
	c, err := rt.NewContext(ctx, o)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (rt onlyRuntime) Close() error {
	return errors.Join(rt.NodeRuntime.Close(), runtime.CloseIdle())
}

const rootLong = `gaol runs untrusted, model-written Node.js code on Linux and gives back what it
printed, its exit code and the value it handed to globalThis.__return.

The kernel holds the guest: namespaces, cgroups, seccomp, an own root file
system, no network. Nothing of the host shows inside.`

const rootExample = `  gaol doctor                                    what this machine offers
  gaol run -e 'console.log(process.version)'     run a line of code
  gaol run --json --timeout 5s prog.mjs          run a file, get one JSON object
  gaol eval -e '[1, 2].map(n => n * n)'          get the value of what a model wrote
  gaol repl                                      work at a context, line by line
  gaol policy presets                            what programs may be let do, by name
  gaol image build                               make the default image
  gaol bench                                     what jails cost, beside bare node`

// main runs the command line args and gives back the exit status.
func (a *app) main(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if code, ok := canceled(ctx, err); ok {
		return code
	}
	if err != nil {
		complain(a.stderr, err)
		return exitFailure
	}
	return a.exit
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "gaol",
		Short:         "Run untrusted Node.js programs in a jail",
		Long:          rootLong,
		Example:       rootExample,
		Version:       versionText(),
		SilenceErrors: true, // main prints them, in one line
		SilenceUsage:  true,
		Args:          usageArgs(noArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("gaol {{.Version}}\n")
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(cmd.CommandPath(), err)
	})
	root.AddCommand(a.runCommand(), a.evalCommand(), a.replCommand(), a.doctorCommand(), a.imageCommand(), a.snapshotCommand(), a.policyCommand(), a.benchCommand(), a.versionCommand())
	return root
}

// usageArgs makes what an argument check finds an error about the usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError(cmd.CommandPath(), err)
		}
		return nil
	}
}

// noArgs refuses arguments. On a command that has subcommands, an argument is
// the name of one that doesn't exist.
func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasSubCommands():
		return errors.New("unknown command " + quote(args[0]))
	default:
		return errors.New("unexpected argument " + quote(args[0]))
	}
}

// addStoreFlag gives cmd the flag that every command with a store has.
func addStoreFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "store", "", "`DIR` of the image store (default /var/lib/gaol, else $XDG_DATA_HOME/gaol)")
}
