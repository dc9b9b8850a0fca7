package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/rootfs"
	"gaol/runtime"
)

// program is the program of gaol run: code, or a command of the image.
type program struct {
	flags.Program
	command string // the program to run instead of code, or ""
	args    []string
}

// program checks the command line and reads the code that it names.
func (f *runFlags) program(cmd *cobra.Command, args []string, stdin io.Reader) (*program, error) {
	words, rest := args, []string(nil)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		words, rest = args[:dash], args[dash:]
	}
	// Standard input is read only if nothing else may be meant. If it turns out to be empty,
	// as in a cron job, the user has more likely forgotten to name a program.
	implicit := len(words) == 0 && !f.command && !f.Set.Changed("eval") && !f.stdin && !f.tty && flags.IsPiped(stdin)
	if implicit {
		words = []string{"-"}
	}
	err := f.check(cmd, words, rest, stdin)
	if err != nil {
		return nil, report.UsageError(cmd.CommandPath(), err)
	}
	p := &program{Program: flags.Program{Format: f.format}, args: rest}
	switch {
	case f.command:
		p.command, p.args = rest[0], rest[1:]
	case f.Set.Changed("eval"):
		p.Code = f.code
		if f.format == runtime.FormatAuto {
			p.Format = runtime.FormatDetect // as node -e
		}
	case words[0] == "-":
		p.Code, err = flags.Code(cmd.Context(), "run", "-", stdin)
		if implicit && err == nil && p.Code == "" {
			err = report.UsageError(cmd.CommandPath(), f.checkWords(nil, rest))
		}
	default:
		p.Program, err = f.readFile(cmd.Context(), words[0])
	}
	return p, err
}

// folderDir is where --with-folder shows the folder of the program.
const folderDir = "/app"

// readFile reads the program at path, a file or a folder. It mounts the folder, or the file's
// folder with --with-folder.
func (f *runFlags) readFile(ctx context.Context, path string) (p flags.Program, err error) {
	f.file = path
	dir := filepath.Dir(path)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		f.withFolder, dir = true, path
		if f.file, err = flags.MainFile(path); err != nil {
			return p, err
		}
	}
	if p, err = flags.ProgramFile(ctx, f.file, f.format); err != nil || !f.withFolder {
		return p, err
	}
	if f.Server != "" {
		return p, report.Advise(errors.New("run: a server does not see the program's folder"), "run as root without --server")
	}
	rel, err := filepath.Rel(dir, f.file)
	p.Name = filepath.Join(folderDir, rel)
	return p, cmp.Or(err, f.MountFolder(dir, folderDir))
}

// folderNote returns a line for a program that failed because it imports a file beside its own. Errors
// of import name such a file in the working directory.
func (f *runFlags) folderNote(res *runtime.Result) []string {
	if f.file == "" || f.withFolder || f.Server != "" || res.Error == nil {
		return nil
	}
	_, name, _ := strings.Cut(res.Error.Message, "Cannot find module '")
	for _, start := range []string{"./", "../", f.Options().Cwd + "/"} {
		if strings.HasPrefix(name, start) {
			return []string{"the program does not see the files beside its own on the host; show it their folder, read-only, with --with-folder"}
		}
	}
	return nil
}

func (f *runFlags) check(cmd *cobra.Command, words, rest []string, stdin io.Reader) error {
	if err := f.Check(cmd.Context()); err != nil {
		return err
	}
	if f.save != "" { // after the run it would be too late
		if err := rootfs.CheckName(f.save); err != nil {
			return fmt.Errorf("--save: %w", err)
		}
	}
	if err := f.checkWords(words, rest); err != nil {
		return err
	}
	return f.checkTerminal(stdin)
}

// checkWords rejects command lines that name no program, or two. The words precede --,
// and the rest follows it.
func (f *runFlags) checkWords(words, rest []string) error {
	code := f.Set.Changed("eval")
	switch {
	case f.interleave && !f.json:
		return errors.New("--interleave goes with --json: without it both streams are passed through as they come")
	case f.withFolder && (len(words) != 1 || words[0] == "-"):
		return errors.New("--with-folder needs a FILE, whose folder it shows")
	case f.command && code:
		return errors.New("--command and -e exclude each other")
	case f.command && len(words) > 0:
		return errors.New("--command takes its program after --: --command -- " + report.OneLine(words[0]))
	case f.command && (len(rest) == 0 || rest[0] == ""):
		return errors.New("--command needs a program: --command -- PROG [ARG...]")
	case f.command:
		return nil
	case code && len(words) > 0:
		return errors.New("-e and a file exclude each other; the program's arguments go after --")
	case code:
		return nil
	case len(words) == 0:
		return errors.New("nothing to run: give a FILE, - or -e CODE")
	case len(words) > 1:
		return fmt.Errorf("unexpected argument %q: the program's arguments go after --", words[1])
	case words[0] == "-" && f.stdin:
		return errors.New("- and --stdin exclude each other: both read standard input")
	case words[0] == "-" && f.tty:
		return errors.New("- and --tty exclude each other: both read standard input")
	}
	return nil
}

// checkTerminal rejects flags that --tty excludes: a terminal has one stream for input and
// output, and nothing is kept of it.
func (f *runFlags) checkTerminal(stdin io.Reader) error {
	if !f.tty {
		return nil
	}
	for _, name := range []string{"json", "stdin", "max-output"} {
		if f.Set.Changed(name) {
			return errors.New("--tty and --" + name + " exclude each other")
		}
	}
	if !report.IsTerminal(stdin) {
		return errors.New("--tty: standard input is not a terminal")
	}
	return nil
}

// terminalProcess is a process with a terminal, of this process or of a server.
type terminalProcess struct {
	control interface {
		Kill()
		Signal(s syscall.Signal) error
		Done() <-chan struct{}
		Resize(rows, cols uint16) error
		Wait(ctx context.Context) (*runtime.Result, error)
	}
	stdin  io.WriteCloser
	stdout io.Reader
}

// runOnTerminal runs p on a new terminal, connected to the user's.
func (a *app) runOnTerminal(ctx context.Context, sb sandbox, p *program, f *runFlags) (*runtime.Result, error) {
	tty := report.OpenTerminal(a.stdin)
	o := runtime.SpawnOptions{Terminal: &runtime.Terminal{Term: os.Getenv("TERM")}}
	if f.Set.Changed("timeout") { // the default would end a session while the user types
		o.Timeout = max(f.Timeout(), 0) // for Spawn, 0 is no limit
	}
	o.Terminal.Rows, o.Terminal.Cols = tty.Size()
	proc, err := sb.spawn(ctx, p, o)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, proc.control.Kill)() // for Spawn, ctx bounds the start only
	signals, done := a.signals.forProgram()
	defer done()
	go func() {
		select {
		case s := <-signals:
			_ = proc.control.Signal(s) // fails if the program has ended
		case <-proc.control.Done():
		}
	}()
	restore, err := tty.MakeRaw()
	if err != nil {
		proc.control.Kill()
		return nil, err
	}
	defer restore()
	defer tty.Watch(func(rows, cols uint16) {
		_ = proc.control.Resize(rows, cols) // fails if the program has ended
	}, restore)()
	go func() { // not waited for: the user may press no more keys
		_, _ = io.Copy(proc.stdin, tty)
		_ = proc.stdin.Close()
	}()
	if _, err := io.Copy(a.stdout, proc.stdout); err != nil {
		proc.control.Kill()
		return nil, report.NewOutputError("standard output", err)
	}
	return proc.control.Wait(context.WithoutCancel(ctx)) // the program has ended, or closed its terminal
}
