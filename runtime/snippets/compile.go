package snippets

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"gaol/runtime"
	"gaol/runtime/snippets/bundle"
	"gaol/runtime/snippets/lint"
)

// packagesDir is the path of the bundles of packages in sandboxes.
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

// names lists the exports of a package in CommonJS, by running it in a sandbox.
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

// compile lints the files and bundles them into one ES module. It returns nil if they have
// problems, which it adds to out.
func (r *Runner) compile(ctx context.Context, files []File, out *Output) (*bundle.Program, error) {
	p, problems, err := bundle.Bundle(ctx, files, bundle.Options{
		Packages: r.packages, Mount: packagesDir, Rules: r.rules, Run: r.domain.Bundle,
	})
	if err != nil {
		return nil, err
	}
	for _, problem := range problems {
		out.addProblem(problem)
	}
	return p, nil
}

// rules returns the lint rules, or nil if none apply.
func (o Options) rules() *lint.Rules {
	switch {
	case o.NoLint:
		return nil
	case o.Rules == nil && o.Adapter.Name == Directive.Name:
		return new(lint.Directive())
	}
	return o.Rules
}

//go:embed harness.mjs
var harness string

// guestProgram is the argument of the functions of harness.mjs.
type guestProgram struct {
	Code    string `json:"code"`    // an ES module: the snippet
	Adapter string `json:"adapter"` // an ES module

	// Packages are the specifiers of the modules of packages that the snippet imports, by path.
	Packages map[string]string `json:"packages,omitempty"`
}

// module returns an ES module for the sandbox: the harness, and a call of one of its functions.
func (p guestProgram) module(function string) (string, error) {
	text, err := json.Marshal(p)
	return harness + function + "(" + string(text) + ");\n", err
}

// Input is what one run executes. Exactly one of Source and Files is set.
type Input struct {
	// Source is the text of src/main.ts, as the only file.
	Source string

	// Files are 1 to 10 files, of 200,000 bytes of UTF-8 together. One is src/main.ts, which
	// runs; the others are imported by it.
	Files []File

	// Timeout is the wall-clock time that the snippet may take. It is rounded to the nearest
	// allowed value: 100 ms to 10 s. Zero: 5 s.
	Timeout time.Duration

	// OnLog, if not nil, is called with each of Output.Logs as it arrives, one at a time, and if
	// the snippet runs out of memory also with what V8 prints then. A slow function slows down the
	// snippet.
	OnLog func(line string)
}

// File is a file of a snippet.
type File = bundle.File

// InputError is the error of an input that breaks a rule of [Input].
type InputError struct {
	Code    string // InputTooLarge or InputInvalid
	Message string
}

// Codes of an [InputError].
const (
	InputTooLarge = "input-too-large"
	InputInvalid  = "input-invalid"
)

// Error returns the message.
func (e *InputError) Error() string { return e.Message }
