package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gaol/runtime"
)

// maxCode bounds what is read as code, from a file or from standard input.
const maxCode = 16 << 20

// program is what a gaol run is to run: code, or a command of the image.
type program struct {
	name    string // the code's file name in the guest; "" for the default
	code    string
	format  runtime.ModuleFormat
	command string // if not empty, the program to run in place of code
	args    []string
}

// program reads the command line's words, and the code they lead to.
func (f *runFlags) program(cmd *cobra.Command, args []string, stdin io.Reader) (*program, error) {
	words, rest := args, []string(nil)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		words, rest = args[:dash], args[dash:]
	}
	unnamed := len(words) == 0 && !f.command && !f.set.Changed("eval") && !f.stdin && !f.tty && isPiped(stdin)
	if unnamed {
		words = []string{"-"}
	}
	err := f.check(cmd.Context())
	if err == nil {
		err = f.checkWords(words, rest)
	}
	if err == nil {
		err = f.checkTerminal(stdin)
	}
	if err != nil {
		return nil, usageError(cmd.CommandPath(), err)
	}
	switch {
	case f.command:
		return &program{command: rest[0], args: rest[1:]}, nil
	case f.set.Changed("eval"):
		return &program{code: f.eval, format: f.moduleFormat(), args: rest}, nil
	case words[0] == "-":
		code, err := readCode(cmd.Context(), stdin, "standard input", "run")
		if unnamed && err == nil && code == "" {
			return nil, usageError(cmd.CommandPath(), f.checkWords(nil, rest))
		}
		return &program{code: code, format: f.moduleFormat(), args: rest}, err
	default:
		return f.file(cmd.Context(), words[0], rest)
	}
}

// file reads a program from a file of the host.
func (f *runFlags) file(ctx context.Context, path string, args []string) (*program, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, codeError("run", err)
	}
	defer file.Close()
	p := &program{name: guestName(path), format: f.moduleFormat(), args: args}
	if p.code, err = readCode(ctx, file, path, "run"); err == nil && p.format == runtime.FormatAuto {
		p.format, err = fileFormat(file)
	}
	return p, err
}

// checkWords refuses command lines that name no program, or two. The words are
// those before --, rest are those after it.
func (f *runFlags) checkWords(words, rest []string) error {
	eval := f.set.Changed("eval")
	switch {
	case f.interleave && !f.json:
		return errors.New("--interleave goes with --json: without it both streams go through as they come")
	case f.command && eval:
		return errors.New("--command and -e exclude each other")
	case f.command && len(words) > 0:
		return errors.New("--command takes its program after --: --command -- " + oneLine(words[0]))
	case f.command && (len(rest) == 0 || rest[0] == ""):
		return errors.New("--command needs a program: --command -- PROG [ARG...]")
	case f.command:
		return nil
	case eval && len(words) > 0:
		return errors.New("-e and a file exclude each other; the program's arguments go after --")
	case eval:
		return nil
	case len(words) == 0:
		return errors.New("nothing to run: give a FILE, - or -e CODE")
	case len(words) > 1:
		return errors.New("unexpected argument " + quote(words[1]) + ": the program's arguments go after --")
	case words[0] == "-" && f.stdin:
		return errors.New("- and --stdin exclude each other: both read standard input")
	case words[0] == "-" && f.tty:
		return errors.New("- and --tty exclude each other: both read standard input")
	}
	return nil
}

// guestName gives the name that the file at path bears in the guest. Its
// ending tells the language; without one, as /dev/fd/63 of a shell's <(...),
// it is taken for the default.
func guestName(path string) string {
	name := filepath.Base(path)
	if filepath.Ext(name) == "" {
		return ""
	}
	return name
}

// readCodeFile reads code that is to be evaluated.
func readCodeFile(ctx context.Context, path string) (string, error) {
	const what = "evaluate"
	file, err := os.Open(path)
	if err != nil {
		return "", codeError(what, err)
	}
	defer file.Close()
	return readCode(ctx, file, path, what)
}

// readCode reads code. What for is said in errors: run, or evaluate.
func readCode(ctx context.Context, r io.Reader, name, what string) (string, error) {
	code, err := readBounded(ctx, r, name, maxCode)
	if err != nil && ctx.Err() == nil {
		err = codeError(what, err)
	}
	return string(code), err
}

// isPiped reports whether standard input may have text to read: it is a pipe, a socket or a
// regular file, and neither a terminal nor /dev/null.
func isPiped(stdin io.Reader) bool {
	file, ok := stdin.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0)
}

// readBounded reads all of r, within bounds and until ctx is done: a terminal or
// a pipe may keep a Read waiting for ever.
func readBounded(ctx context.Context, r io.Reader, name string, most int64) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1) // room for one: the reader may outlive this call
	go func() {
		text, err := io.ReadAll(io.LimitReader(r, most+1))
		done <- result{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case got := <-done:
		if got.err == nil && int64(len(got.text)) > most {
			got.err = fmt.Errorf("more than %s", bytesOf(size(most)))
		}
		if p, ok := errors.AsType[*fs.PathError](got.err); ok {
			got.err = p.Err // the file has a name here
		}
		if got.err != nil {
			return nil, fmt.Errorf("read %s: %w", name, got.err)
		}
		return got.text, nil
	}
}

func codeError(what string, err error) error {
	return &advisedError{fmt.Errorf("%s: %w", what, err), "give a file of JavaScript, - or -e CODE"}
}
