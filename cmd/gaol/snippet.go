package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gaol/cmd/gaol/examplecheck"
	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/cmd/gaol/server/settings"
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
