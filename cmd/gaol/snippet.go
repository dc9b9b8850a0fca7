package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gaol/cmd/gaol/examplecheck"
	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/cmd/gaol/source"
	"gaol/rootfs"
	"gaol/runtime"
	"gaol/runtime/snippets"
)

const snippetLong = `Find out whether an example works. A snippet is JavaScript or TypeScript of one or several
files, at most 10, of which src/main.ts runs. It runs in a sandbox of its own. The output
is what it printed, the state of the framework that it uses, and its errors.`

func (a *app) snippetCommand() *cobra.Command {
	return group("snippet", "Run snippets, and check the examples of a documentation", snippetLong, a.snippetRunCommand(), a.snippetCheckCommand())
}

// snippetFlags are the flags of all commands of gaol snippet.
type snippetFlags struct {
	set       *pflag.FlagSet
	options   snippets.Options
	isolation string
	adapter   string
	timeout   time.Duration
	json      bool
}

// add defines the flags.
func (f *snippetFlags) add(cmd *cobra.Command) {
	f.set = cmd.Flags()
	f.set.SortFlags = false
	f.timeout = snippets.DefaultTimeout
	f.set.StringVar(&f.options.NodeModules, "node-modules", "", "`DIR` of the host with the packages that snippets may import")
	f.set.StringVar(&f.adapter, "adapter", "none", "`NAME` of what reads the state: none for what a snippet exports, directive, or a FILE.mjs")
	f.set.BoolVar(&f.options.NoLint, "no-lint", false, "turn off the lint rules of the adapter; they are no protection")
	f.set.Var(flags.Choice(&f.options.Network, "NAME", "none", "want none or public", map[string]string{"none": "", "public": "public"}),
		"network", "none, or public for the hosts of the public internet")
	f.set.Var(flags.Duration(&f.timeout), "timeout", "time limit of a snippet, from 100ms to 10s")
	flags.AddIsolation(cmd, &f.isolation, "snippets")
	flags.AddImage(cmd, &f.options.Image)
	flags.AddStore(cmd, &f.options.Store)
	flags.Complete(cmd, "network", cobra.FixedCompletions([]string{"none", "public"}, cobra.ShellCompDirectiveNoFileComp))
	flags.Complete(cmd, "adapter", completeAdapter)
	_ = cmd.MarkFlagDirname("node-modules") // it exists
}

// completeAdapter completes the names of adapters, and files.
func completeAdapter(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return []string{snippets.None.Name, snippets.Directive.Name}, cobra.ShellCompDirectiveDefault
}

// check rejects wrong values, and reads the adapter.
func (f *snippetFlags) check(ctx context.Context) (err error) {
	if err := flags.CheckNotEmpty(f.set, "node-modules", "adapter", "image", "store"); err != nil {
		return err
	}
	if f.timeout < snippets.MinTimeout || f.timeout > snippets.MaxTimeout {
		return fmt.Errorf("--timeout %v: want a time from %v to %v", f.timeout, snippets.MinTimeout, snippets.MaxTimeout)
	}
	if f.options.Isolation, f.options.OCI, err = flags.ParseIsolation(f.isolation); err != nil {
		return err
	}
	if modules := &f.options.NodeModules; *modules != "" {
		dir, err := filepath.Abs(*modules)
		if err != nil {
			return err
		}
		*modules = dir
	}
	return f.readAdapter(ctx)
}

// maxAdapter is the most bytes of an adapter's file.
const maxAdapter = 1 << 20

func (f *snippetFlags) readAdapter(ctx context.Context) error {
	for _, a := range []snippets.Adapter{snippets.None, snippets.Directive} {
		if f.adapter == a.Name {
			f.options.Adapter = a
			return nil
		}
	}
	if filepath.Ext(f.adapter) != ".mjs" {
		return fmt.Errorf("--adapter %s: want none, directive or a FILE.mjs", report.OneLine(f.adapter))
	}
	file, name, err := source.File(f.adapter, nil)
	if err != nil {
		return fmt.Errorf("--adapter: %w", err)
	}
	defer file.Close()
	code, err := source.Read(ctx, file, name, maxAdapter)
	if err != nil {
		return fmt.Errorf("--adapter: %w", err)
	}
	f.options.Adapter = snippets.Adapter{Name: strings.TrimSuffix(filepath.Base(name), ".mjs"), Code: string(code)}
	return nil
}

// findImage makes the image exact, because the default one and names change, and builds the
// default image if it is missing.
func (a *app) findImage(ctx context.Context, f *snippetFlags) error {
	if a.snippets != nil { // a test
		return nil
	}
	o := rootfs.BuildOptions{Progress: a.progress()}
	if !f.json {
		o.Progress = a.stderr
	}
	store, err := rootfs.Open(f.options.Store)
	if err != nil {
		return err
	}
	image, err := store.Ensure(ctx, f.options.Image, o)
	if err == nil {
		f.options.Image = image.ID
	}
	return err
}

// openSnippets returns a runner of snippets.
func (a *app) openSnippets(o snippets.Options) (examplecheck.Runner, error) {
	if a.snippets != nil {
		return a.snippets(o)
	}
	r, err := snippets.New(o)
	if err != nil {
		return nil, err
	}
	return onlyRunner{r}, nil
}

// onlyRunner is the only runner of this process, so that Close also ends its zygote.
type onlyRunner struct{ *snippets.Runner }

func (r onlyRunner) Close() error { return errors.Join(r.Runner.Close(), runtime.CloseIdle()) }
