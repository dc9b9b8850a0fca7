package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/examplecheck"
	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/cmd/gaol/server/service"
	"gaol/internal/strictjson"
	"gaol/runtime/requestjson"
	"gaol/runtime/snippets"
)

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
