//go:build !noserver

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gaol/cmd/gaol/examplecheck"
	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/internal/strictjson"
	"gaol/runtime/client"
	"gaol/runtime/requestjson"
	"gaol/runtime/snippets"
)

const snippetLong = `Find out whether an example works. A snippet is JavaScript or TypeScript of one or several
files, at most 10, of which src/main.ts runs. It runs in a new sandbox. The result has its
output, the state of the framework that it uses, and its errors.`

func (a *app) snippetCommand() *cobra.Command {
	return group("snippet", "Run snippets, and check the examples of a documentation", snippetLong, a.snippetRunCommand(), a.snippetCheckCommand())
}

// snippetFlags are the flags of all commands of gaol snippet.
type snippetFlags struct {
	set                        *pflag.FlagSet
	options                    snippets.Options
	isolation, server, adapter string
	timeout                    time.Duration
	json                       bool
}

// add defines the flags.
func (f *snippetFlags) add(cmd *cobra.Command) {
	f.set = cmd.Flags()
	f.set.SortFlags = false
	f.timeout, f.adapter = snippets.DefaultTimeout, snippets.None.Name
	f.set.Var(flags.Folder(&f.options.NodeModules), "node-modules", "`DIR` of the host with the packages that snippets may import")
	f.set.Var(flags.Text(&f.adapter), "adapter", "`NAME` of the adapter that reads the state: none for the snippet's exports, directive, or a FILE.mjs")
	f.set.BoolVar(&f.options.NoLint, "no-lint", false, "turn off the lint rules of the adapter; they do not protect")
	f.set.Func("lint-rules", "JSON `FILE` with lint rules that replace the adapter's; see docs/snippets.md", func(path string) (err error) {
		f.options.Rules, err = settings.ReadLintRules(path)
		return err
	})
	flags.Choice[string]{"none": "", "public": "public"}.Add(cmd, &f.options.Network, "network", "none, or public for the hosts of the public internet")
	f.set.Var(flags.Duration(&f.timeout), "timeout", "time limit of a snippet, from 100ms to 10s")
	flags.AddIsolation(cmd, &f.isolation, "snippets")
	flags.AddImage(cmd, &f.options.Sandbox.Image)
	flags.AddStore(cmd, &f.options.Sandbox.Store)
	flags.AddServer(cmd, &f.server, "server that runs the snippets with its image, packages and lint rules, by default the one of this machine if you are not root")
	flags.Complete(cmd, "adapter", cobra.FixedCompletions([]string{snippets.None.Name, snippets.Directive.Name}, cobra.ShellCompDirectiveDefault)) // and files
	_ = cmd.MarkFlagDirname("node-modules")                                                                                                        // it exists
	_ = cmd.MarkFlagFilename("lint-rules", "json")
}

// check rejects wrong values, and reads the adapter.
func (f *snippetFlags) check() (err error) {
	if f.timeout < snippets.MinTimeout || f.timeout > snippets.MaxTimeout {
		return fmt.Errorf("--timeout %v: want a time from %v to %v", f.timeout, snippets.MinTimeout, snippets.MaxTimeout)
	}
	if f.options.Sandbox.Isolation, f.options.Sandbox.OCI, err = flags.ParseIsolation(f.isolation); err != nil {
		return err
	}
	if f.server != "" {
		if filepath.Ext(f.adapter) == ".mjs" {
			return fmt.Errorf("--adapter %s: a server has adapters with names only", report.OneLine(f.adapter))
		}
		f.options.Adapter.Name = f.adapter // the server knows its adapters
		return flags.RejectOnServer(f.set, "node-modules", "no-lint", "lint-rules", "isolation", "image", "store")
	}
	if f.options.Rules != nil && f.options.NoLint {
		return errors.New("--lint-rules and --no-lint exclude each other: --no-lint turns off all rules")
	}
	if f.options.Adapter, err = settings.ReadAdapter(f.adapter); err != nil {
		err = fmt.Errorf("--adapter %s: %w", report.OneLine(f.adapter), err)
	}
	return err
}

// openSnippets returns a runner of snippets.
func (a *app) openSnippets(ctx context.Context, f *snippetFlags, o snippets.Options) (examplecheck.Runner, error) {
	switch {
	case a.snippets != nil: // a test
		return a.snippets(o)
	case f.server != "":
		return dialSnippets(ctx, f.server, o)
	}
	o.Sandbox.WorkInProcess = true // the snippets are the user's own
	if o.Sandbox.Progress = a.progress(); !f.json {
		o.Sandbox.Progress = a.stderr
	}
	return snippets.New(o)
}

const snippetRunUse = `run [flags] FILE|DIR
  gaol snippet run [flags] [-] < SOURCE
  gaol snippet run [flags] --json - < OBJECT`

const snippetRunLong = `Run a snippet: a file of JavaScript, TypeScript or JSX, a folder with src/main.ts, or
standard input.

Lines of console are printed as they come. What follows them is the state: facts, and
derived, which is computed from them. Errors are printed on standard error.

--json prints one object instead, and nothing else:

  {"logs": ["[log] hello"], "facts": {}, "derived": {}, "errors": [], "durationMs": 12,
   "timedOut": false}

With it, standard input may be an input object, {"source": TEXT} or {"files": [{"path":
PATH, "source": TEXT}]}, in both cases with "timeoutMs" if wanted. Text is an input object if
its first characters other than blanks are { and ": no program begins so. Mistakes in an
input object are errors of the output.

Exit status: 0 if there is no error and the time was enough, 1 otherwise, 125 if gaol
itself failed.`

const snippetRunExample = `  gaol snippet run example.ts
  gaol snippet run --adapter directive --node-modules node_modules counter/
  echo 'export const answer: number = 6 * 7' | gaol snippet run
  echo '{"source": "console.log(1)", "timeoutMs": 500}' | gaol snippet run --json -`

// snippetFailure is the exit status for a snippet, or an example, that does not work.
const snippetFailure = 1

func (a *app) snippetRunCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   snippetRunUse,
		Short:                 "Run a snippet and print its output and state",
		Long:                  snippetRunLong,
		Example:               snippetRunExample,
		DisableFlagsInUseLine: true, // snippetRunUse shows them
	}
	f := &snippetFlags{server: a.server}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 1 || len(args) == 0 && !flags.IsPiped(a.stdin) {
			return errNoSnippet
		}
		return f.check()
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.readSnippet(cmd.Context(), append(args, "-")[0], f)
		// The user has more likely forgotten to name a file than given an empty one.
		if len(args) == 0 && err == nil && s.invalid == nil && s.input.Source == "" && s.input.Files == nil {
			err = report.UsageError(cmd.CommandPath(), errNoSnippet)
		}
		if err != nil {
			return err
		}
		return a.runSnippet(cmd.Context(), s, f)
	}
	f.add(cmd)
	f.set.BoolVar(&f.json, "json", false, "print one JSON object about the run and nothing else; standard input may be one, too")
	return cmd
}

// namedSnippet is the snippet of gaol snippet run, and its example.
type namedSnippet struct {
	input   snippets.Input
	example *examplecheck.Example // nil for standard input
	invalid error                 // the mistake of an input object
}

var errNoSnippet = errors.New("want one snippet: a FILE, a DIR or -")

// runSnippet runs a snippet, prints its output and sets a.exit.
func (a *app) runSnippet(ctx context.Context, s *namedSnippet, f *snippetFlags) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !f.json {
		s.input.OnLog = func(line string) {
			if err := a.print(report.Sanitize(line, false) + "\n"); err != nil {
				cancel(err)
			}
		}
	}
	out, err := a.snippetOutput(ctx, s, f)
	if out == nil {
		return err
	}
	if len(out.Errors) > 0 || out.TimedOut {
		a.exit = snippetFailure
	}
	return errors.Join(a.printSnippet(out, s, f), err)
}

// snippetOutput runs s. An output beside an error is the output of an interrupted snippet.
func (a *app) snippetOutput(ctx context.Context, s *namedSnippet, f *snippetFlags) (*snippets.Output, error) {
	empty := json.RawMessage("{}")
	if s.invalid != nil {
		return &snippets.Output{Logs: []string{}, Facts: empty, Derived: empty, Errors: []string{s.invalid.Error()}}, nil
	}
	f.options.MaxConcurrent = 1
	r, err := a.openSnippets(ctx, f, f.options)
	if err != nil {
		return nil, err
	}
	out, err := examplecheck.Run(ctx, r, s.input)
	return out, errors.Join(err, r.Close())
}

// readSnippet reads the snippet that the argument names.
func (a *app) readSnippet(ctx context.Context, arg string, f *snippetFlags) (*namedSnippet, error) {
	if arg != "-" {
		e, err := examplecheck.Open(arg)
		if err != nil {
			return nil, err
		}
		if e.Fault != "" {
			return nil, errors.New(e.Fault)
		}
		return &namedSnippet{input: snippets.Input{Files: e.Files, Timeout: f.timeout}, example: e}, nil
	}
	text, err := flags.Read(ctx, a.stdin, "standard input", flags.MaxCode)
	if err != nil {
		return nil, err
	}
	if f.json && isInputObject(text) {
		in, err := parseInput(text, f.timeout)
		return &namedSnippet{input: in, invalid: err}, nil
	}
	return &namedSnippet{input: snippets.Input{Source: string(text), Timeout: f.timeout}}, nil
}

// isInputObject reports whether text is meant as an input object: it begins with a brace and a
// quote. A program that did would begin with a block that begins with a string.
func isInputObject(text []byte) bool {
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{"))
	return ok && bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(`"`))
}

// parseInput parses an input object as the server parses requests. The timeout applies if the
// object omits timeoutMs.
func parseInput(text []byte, timeout time.Duration) (snippets.Input, error) {
	var object struct {
		Source    *string         `json:"source"`
		Files     []snippets.File `json:"files"`
		TimeoutMs *int64          `json:"timeoutMs"`
	}
	err := strictjson.Decode(text, &object)
	var in snippets.Input
	if err == nil {
		r := &requestjson.SnippetRunIn{Source: object.Source, Files: object.Files, TimeoutMs: object.TimeoutMs}
		in, err = service.SnippetInput(r, snippets.MaxTimeout)
	}
	if err != nil {
		return snippets.Input{}, fmt.Errorf("input: %w", err)
	}
	if object.TimeoutMs == nil {
		in.Timeout = timeout
	}
	return in, nil
}

// printSnippet prints an output: all of it as JSON, or what follows the lines for people.
func (a *app) printSnippet(out *snippets.Output, s *namedSnippet, f *snippetFlags) error {
	if f.json {
		return report.JSON(a.stdout, out)
	}
	if err := cmp.Or(a.printState("facts", out.Facts), a.printState("derived", out.Derived)); err != nil {
		return err
	}
	for _, text := range out.Errors {
		if s.example != nil {
			text = examplecheck.Locate(s.example, text)
		}
		fmt.Fprintln(a.stderr, "error: "+report.Sanitize(text, false))
	}
	if a.exit != 0 {
		for _, d := range out.Denials[:min(len(out.Denials), flags.MaxDenials)] {
			report.Notes(a.stderr, flags.DenialText(d))
		}
	}
	return nil
}

// printState prints facts or derived values, unless there are none.
func (a *app) printState(name string, text json.RawMessage) error {
	var b bytes.Buffer
	if string(text) == "{}" || json.Indent(&b, text, "", "  ") != nil {
		return nil
	}
	return a.print(name + ": " + report.Sanitize(b.String(), false) + "\n")
}

// remoteSnippets runs snippets on a server.
type remoteSnippets struct {
	connection *client.Client
	options    client.SnippetOptions
}

func dialSnippets(ctx context.Context, server string, o snippets.Options) (examplecheck.Runner, error) {
	c, err := dial(ctx, server)
	if err != nil {
		return nil, err
	}
	return remoteSnippets{c, client.SnippetOptions{Adapter: snippets.Adapter{Name: o.Adapter.Name}, Permissions: o.Network}}, nil
}

func (r remoteSnippets) Run(ctx context.Context, in snippets.Input) (*snippets.Output, error) {
	out, err := r.connection.RunSnippet(ctx, in, r.options)
	return out, adviseServer(err)
}

func (r remoteSnippets) Close() error { return r.connection.Close() }
