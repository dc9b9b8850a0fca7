package snippets

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"gaol/runtime"
	"gaol/runtime/snippets/bundle"
	"gaol/runtime/snippets/lint"
)

// packagesDir is where sandboxes have the bundles of packages.
const packagesDir = "/packages"

// openPackages opens the folder of packages, if there is one.
func (r *Runner) openPackages(o Options) (err error) {
	if o.NodeModules == "" {
		return nil
	}
	if o.Cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("option Cache: %w", err)
		}
		o.Cache = filepath.Join(dir, "gaol", "packages")
	}
	r.packages, err = bundle.NewPackages(bundle.PackagesOptions{Folder: o.NodeModules, Cache: o.Cache, Names: r.names})
	return err
}

// names lists what a package in CommonJS exports, by running it in a sandbox.
func (r *Runner) names(ctx context.Context, module string) (names []string, err error) {
	err = r.sandboxes.use(ctx, func(rt *runtime.NodeRuntime) error {
		res, err := rt.Run(ctx, bundle.NamesProgram(path.Join(packagesDir, module)), runtime.RunOptions{Timeout: MaxTimeout})
		if err == nil && res.ExitCode == 0 && res.Value != nil {
			err = json.Unmarshal(res.Value, &names)
		}
		return err
	})
	return names, err
}

// compile checks the files and bundles them into one ES module. It returns nil if they have
// problems, which it adds to out.
func (r *Runner) compile(ctx context.Context, files []File, w wraps, out *Output) (*program, error) {
	if r.lint {
		if err := r.check(ctx, files, out); err != nil {
			return nil, err
		}
	}
	if len(out.Errors) > 0 {
		return nil, nil
	}
	p, problems, err := bundle.Bundle(ctx, files, bundle.Options{
		Entry: EntryPath, Packages: r.packages, Mount: packagesDir, Replace: w.replacements(), Run: r.domain.Bundle,
	})
	if err != nil {
		return nil, err
	}
	for _, problem := range problems {
		out.addProblem(problem)
	}
	if p == nil {
		return nil, nil
	}
	return &program{p.Code, p.Position}, nil
}

// check adds what the linter finds.
func (r *Runner) check(ctx context.Context, files []File, out *Output) error {
	for _, f := range files {
		problems, err := r.domain.Lint(ctx, r.rules, f.Path, f.Source)
		if err != nil {
			return err
		}
		for _, p := range problems {
			out.addProblem(Problem{Path: p.Path, Line: p.Line, Column: p.Column, Message: p.Message})
		}
	}
	return nil
}

// rules returns the lint rules, if there are any.
func (o Options) rules() (rules lint.Rules, ok bool) {
	switch {
	case o.NoLint:
		return rules, false
	case o.Rules != nil:
		return *o.Rules, true
	case o.Adapter.Name == Directive.Name:
		return lint.Directive(), true
	}
	return rules, false
}
