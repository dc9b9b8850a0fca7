//go:build !noserver

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/examplecheck"
	"gaol/cmd/gaol/report"
)

const snippetCheckLong = `Run the examples of a documentation, and fail if one of them fails or
runs out of time. A PATH is a file or a folder. Examples are

  x.ts, .tsx, .js, .jsx, .mjs   a file is an example
  DIR/src/main.ts               DIR/src is an example of several files
  x.md, x.mdx                   each fence of TypeScript or JavaScript that is marked with
                                run; with --all-fences each one

In folders, node_modules, names that begin with a dot, and symbolic links are skipped.

Words behind the language of a fence:

  run               it is an example
  example=NAME      fences of the same name in a page are one example; fences of the same
                    file are joined
  file=src/x.ts     its file in the example; otherwise src/main.ts, which runs
  error             the example must have an error
  error="TEXT"      which must contain TEXT
  skip="REASON"     it is not run

--update writes the output of each example that passes beside it, as x.ts.expected.json. A check
compares the output with this file if it exists, except for durations.

Exit status: 0 if all examples work, 1 if one does not, 125 if gaol itself failed, or found no
example.`

const snippetCheckExample = `  gaol snippet check docs
  gaol snippet check --node-modules node_modules --adapter directive README.md examples
  gaol snippet check --update docs
  gaol snippet check --json docs | jq '.examples[] | select(.status == "failed")'`

// checkFlags are the flags of gaol snippet check.
type checkFlags struct {
	snippetFlags
	allFences, github, update, verbose bool
}

func (a *app) snippetCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "check PATH...",
		Short:   "Run the examples of a documentation, and fail if one does not work",
		Long:    snippetCheckLong,
		Example: snippetCheckExample,
	}
	f := &checkFlags{snippetFlags: snippetFlags{server: a.server}}
	cmd.Args = cobra.MatchAll(cobra.MinimumNArgs(1), func(*cobra.Command, []string) error {
		if f.json && f.github {
			return errors.New("--json and --github exclude each other: --json prints nothing else")
		}
		return f.check()
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !f.set.Changed("github") && !f.json {
			f.github = os.Getenv("GITHUB_ACTIONS") == "true"
		}
		return a.checkExamples(cmd.Context(), args, f)
	}
	f.add(cmd)
	f.set.BoolVar(&f.allFences, "all-fences", false, "take all fences of TypeScript and JavaScript, and not only those marked with run")
	f.set.BoolVar(&f.update, "update", false, "write the output of examples that pass beside them")
	f.set.BoolVarP(&f.verbose, "verbose", "v", false, "also list the examples that do not fail")
	f.set.BoolVar(&f.json, "json", false, "print one JSON object about the check and nothing else")
	f.set.BoolVar(&f.github, "github", false, "also print annotations for GitHub (default: where GITHUB_ACTIONS is true)")
	return cmd
}

// checkExamples checks the examples of paths, prints a report and sets a.exit.
func (a *app) checkExamples(ctx context.Context, paths []string, f *checkFlags) error {
	set, err := examplecheck.Find(ctx, paths, f.allFences)
	if err != nil {
		return err
	}
	defer set.Close()
	if len(set.Examples) == 0 {
		return report.Advise(errors.New("check: there is no example"), "mark fences with run, or use --all-fences")
	}
	workers := 2 * goruntime.GOMAXPROCS(0) // examples wait for timers part of their time
	shared := f.options
	shared.Shared, shared.MaxConcurrent = true, workers // all examples have the same owner
	show, clearBar := progressOf(a.progress(), len(set.Examples))
	o := examplecheck.Options{
		Open:    func() (examplecheck.Runner, error) { return a.openSnippets(ctx, &f.snippetFlags, shared) },
		Timeout: f.timeout, Workers: workers, Update: f.update, Progress: show,
	}
	checked, err := examplecheck.Check(ctx, set.Examples, o)
	clearBar()
	if err != nil {
		return err
	}
	if checked.Failed > 0 {
		a.exit = snippetFailure
	}
	return a.printCheck(checked, f)
}

// printCheck prints the report.
func (a *app) printCheck(r *examplecheck.Report, f *checkFlags) error {
	if f.json {
		return report.JSON(a.stdout, r)
	}
	text := r.Text(examplecheck.TextOptions{Verbose: f.verbose, Colors: colors(a.stdout)})
	if f.github {
		text = r.GitHub(os.Getenv("GITHUB_WORKSPACE")) + examplecheck.WithoutCommands(text)
	}
	return a.print(text)
}

// progressOf returns functions that show on a terminal how many examples are finished, and that remove the text. They
// do nothing if w is nil.
func progressOf(w io.Writer, examples int) (show func(finished int), remove func()) {
	if w == nil {
		return func(int) {}, func() {}
	}
	const clearLine = "\r\x1b[K"
	show = func(finished int) { fmt.Fprintf(w, clearLine+"examples %d/%d", finished, examples) }
	return show, func() { _, _ = io.WriteString(w, clearLine) }
}
