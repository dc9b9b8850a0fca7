package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/bench"
	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/publish"
	"gaol/cmd/gaol/repl"
	"gaol/cmd/gaol/report"
	"gaol/runtime"
)

func main() {
	leaveToServer(os.Args)
	ctx, signals := withSignals(context.Background())
	a := &app{signals: signals, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, create: createRuntime, measure: bench.Measure, server: flags.FindServer()}
	code := a.main(ctx, os.Args[1:])
	signals.release()
	signals.cancel(nil)
	os.Exit(code)
}

// errStopped ends a server that a signal has stopped. That is a success.
var errStopped = errors.New("stopped")

// silentStatus returns the exit status of a command that ended without a message:
// because of a signal, with the status that a shell gives to a program that the
// signal killed, or because the reader of its output closed the pipe.
func silentStatus(ctx context.Context, err error) (int, bool) {
	if errors.Is(err, errStopped) {
		return 0, true
	}
	if sig, ok := errors.AsType[signalError](context.Cause(ctx)); ok {
		return report.ExitSignal + int(sig.sig), true
	}
	// Only for gaol's own output: an EPIPE from elsewhere is a failure.
	if out, ok := errors.AsType[*report.OutputError](err); ok && errors.Is(out, syscall.EPIPE) {
		return report.ExitSignal + int(syscall.SIGPIPE), true
	}
	return 0, false
}

// version is set by the Makefile with -ldflags -X.
var version = "devel"

func versionText() string {
	return fmt.Sprintf("%s (%s, %s/%s)", version, goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, as --version does",
		RunE:  func(*cobra.Command, []string) error { return a.print("gaol " + versionText() + "\n") },
	}
}

// app is one invocation. Tests replace create and measure, because most of them check the
// command line and not the jail.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	create         func(context.Context, runtime.Options) (sandbox, error)
	measure        func(context.Context, bench.Options) (*bench.Report, error)

	serverParts

	signals *signals // to this process; nil in tests

	// server is the socket of a server for users without root, or "".
	server string

	exit int // status of a command that succeeded: usually 0, or the guest's
}

// sandbox is a sandbox of this process or of a server, with the methods that the commands use.
type sandbox interface {
	runner
	Evaluate(ctx context.Context, code string, o runtime.EvaluateOptions) (*runtime.Evaluation, error)
	Snapshot(ctx context.Context, o runtime.SnapshotOptions) (*runtime.Snapshot, error)
	spawn(ctx context.Context, p *program, o runtime.SpawnOptions) (*terminalProcess, error)
	newContext(ctx context.Context, o runtime.ContextOptions) (repl.Context, error)
	publish.Guest
	Missing() []string
	Limits() runtime.Limits
	Close() error
}

// createRuntime is the app.create of the real command.
func createRuntime(ctx context.Context, o runtime.Options) (sandbox, error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // a collection takes as long as a short program, which ends below 16 MiB
	}
	rt, err := runtime.Create(ctx, o)
	if err != nil {
		return nil, err
	}
	return localSandbox{rt}, nil
}

// localSandbox is a sandbox of this process.
type localSandbox struct{ *runtime.NodeRuntime }

func (rt localSandbox) newContext(ctx context.Context, o runtime.ContextOptions) (repl.Context, error) {
	return rt.NewContext(ctx, o)
}

func (rt localSandbox) spawn(ctx context.Context, p *program, o runtime.SpawnOptions) (*terminalProcess, error) {
	proc, err := start(ctx, p, o, rt.SpawnCode, rt.Spawn)
	if err != nil {
		return nil, err
	}
	return &terminalProcess{proc, proc.Stdin, proc.Stdout}, nil
}

// open creates a sandbox, on a server if f names one. Unless quiet, it prints which limits and rules this machine cannot
// enforce, because the user relies on them, and the progress of building a missing image. With
// --json, standard error stays empty unless it is a terminal.
func (a *app) open(ctx context.Context, f *flags.Sandbox, o runtime.Options, quiet bool) (sandbox, error) {
	create := a.create
	if f.Server != "" {
		create = func(ctx context.Context, o runtime.Options) (sandbox, error) { return createRemote(ctx, f, o) }
	}
	if o.Progress = a.progress(); !quiet {
		o.Progress = a.stderr // also into a file or pipe: a missing image takes long, and only once
	}
	sb, err := create(ctx, o)
	if err == nil && !quiet {
		report.Notes(a.stderr, f.Notes(sb.Missing(), sb.Limits())...)
	}
	return sb, err
}

// progress returns standard error if it is a terminal. In a file or pipe, reports of
// progress would mix with the program's output.
func (a *app) progress() io.Writer {
	if report.IsTerminal(a.stderr) {
		return a.stderr
	}
	return nil
}

func (a *app) print(text string) error { return report.Stdout(a.stdout, text) }

// printEither prints v as JSON, or text.
func (a *app) printEither(asJSON bool, v any, text string) error {
	if asJSON {
		return report.JSON(a.stdout, v)
	}
	return a.print(text)
}

// colors reports whether a stream shows colors: it is a terminal, and NO_COLOR is not set. See https://no-color.org.
func colors(stream any) bool { return report.IsTerminal(stream) && os.Getenv("NO_COLOR") == "" }

const rootLong = `gaol runs untrusted, model-written Node.js code on Linux and returns its
output, its exit code and the value it passed to globalThis.__return.

The kernel confines the guest: namespaces, cgroups, seccomp, a root file system of
its own, and a network that has nothing but its own localhost. The guest sees
nothing of the host.`

const rootExample = `  gaol doctor                                    check whether this machine can run gaol
  gaol run -e 'console.log(process.version)'     run a line of code
  gaol run --json --timeout 5s prog.mjs          run a file, print one JSON object
  gaol eval -e '[1, 2].map(n => n * n)'          print the value of a snippet
  gaol run --server default prog.mjs             run a file on a gaol server, without root
  gaol repl                                      evaluate code line by line
  gaol snippet check docs                        run the examples of a documentation
  gaol policy presets                            list named permissions
  gaol image build                               build the default image
  gaol bench                                     measure jails beside bare node`

// main runs a command line and returns the exit status.
func (a *app) main(ctx context.Context, args []string) int {
	root := a.rootCommand(args)
	root.SetArgs(args)
	err := errors.Join(root.ExecuteContext(ctx), runtime.CloseIdle()) // ends zygotes
	if code, ok := silentStatus(ctx, err); ok {
		return code
	}
	if err != nil {
		report.Print(a.stderr, err)
		return report.ExitFailure
	}
	return a.exit
}

// commands lists the commands that both programs have. Only gaol-server has serverCommands, too.
var commands = map[string]func(*app) *cobra.Command{
	"run": (*app).runCommand, "eval": (*app).evalCommand, "repl": (*app).replCommand,
	"ps": (*app).psCommand, "exec": (*app).execCommand, "stop": (*app).stopCommand, "pause": (*app).pauseCommand, "resume": (*app).resumeCommand,
	"submit": (*app).submitCommand, "result": (*app).resultCommand, "doctor": (*app).doctorCommand, "snapshot": (*app).snapshotCommand, "du": (*app).duCommand,
	"policy": (*app).policyCommand, "bench": (*app).benchCommand, "version": (*app).versionCommand, "agent": (*app).agentCommand,
}

// chosen returns the command that the arguments begin with, because it takes a millisecond to describe all, or all commands if
// they begin otherwise, as for help, or ask for the manual pages of all.
func (a *app) chosen(args []string) (chosen []*cobra.Command) {
	for _, all := range []map[string]func(*app) *cobra.Command{commands, serverCommands} {
		if len(args) > 0 && args[0] != "man" && all[args[0]] != nil {
			return []*cobra.Command{all[args[0]](a)}
		}
		for _, command := range all {
			chosen = append(chosen, command(a))
		}
	}
	return chosen
}

// rootCommand returns the root command with the subcommands that the arguments need.
func (a *app) rootCommand(args []string) *cobra.Command {
	root := group("gaol", "Run untrusted Node.js programs in a jail", rootLong)
	root.Example = rootExample
	root.Version = versionText()
	root.SilenceErrors, root.SilenceUsage = true, true // main prints errors, in one line
	root.SetVersionTemplate("gaol {{.Version}}\n")
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return report.UsageError(cmd.CommandPath(), err)
	})
	root.AddCommand(a.chosen(args)...)
	checkUsage(root)
	return root
}

// group returns a command that only has subcommands. It can be run so that cobra checks its
// arguments: for a command without RunE, cobra would print the help of gaol image nosuch, and
// succeed.
func group(use, short, long string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(subcommands...)
	return cmd
}

// checkUsage makes the errors of the checks of cmd and its subcommands usage errors. Commands without a
// check take no arguments.
func checkUsage(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil {
		check = cobra.NoArgs
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		return report.UsageError(cmd.CommandPath(), check(cmd, args))
	}
	for _, sub := range cmd.Commands() {
		checkUsage(sub)
	}
}
