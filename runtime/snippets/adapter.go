package snippets

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"

	"gaol/internal/lazyregexp"
	"gaol/internal/snippet"
	"gaol/runtime"
)

// Adapter connects a framework.
type Adapter struct {
	Name string // such as "directive"
	Code string // an ES module: see docs/snippets.md
}

//go:embed adapters/none.mjs
var noneCode string

//go:embed adapters/directive.mjs
var directiveCode string

// None reads the snippet's exports.
var None = Adapter{Name: "none", Code: noneCode}

// Directive reads the systems that createSystem of @directive-run/core makes.
var Directive = Adapter{Name: "directive", Code: directiveCode}

// wraps are the exports that an adapter wraps, by specifier of their module.
type wraps map[string][]string

// replacements returns the modules that replace wrapped modules, by specifier. They import the wrapped
// module by the same specifier. harness.mjs defines the function gaol.wrap.
func (w wraps) replacements() map[string]string {
	const wrap = `globalThis[Symbol.for("gaol.wrap")]`
	modules := map[string]string{}
	for _, specifier := range slices.Sorted(maps.Keys(w)) {
		from := snippet.Quote(specifier)
		var b strings.Builder
		fmt.Fprintf(&b, "import * as real from %s;\nexport * from %s;\n", from, from)
		for _, name := range w[specifier] {
			fmt.Fprintf(&b, "const $%[1]s = %[2]s(%[3]s, %[4]s, real.%[1]s);\nexport { $%[1]s as %[1]s };\n", name, wrap, from, snippet.Quote(name))
		}
		if !slices.Contains(w[specifier], "default") {
			b.WriteString("export default real.default;\n")
		}
		modules[specifier] = b.String()
	}
	return modules
}

// The adapter is the operator's, but mistakes in it must not become code.
var (
	validName      = lazyregexp.New(`^[A-Za-z_$][\w$]{0,99}$`)
	validSpecifier = lazyregexp.New(`^[\w@./:-]{1,200}$`)
)

func (w wraps) validate() error {
	for specifier, names := range w {
		if !validSpecifier().MatchString(specifier) {
			return fmt.Errorf("wrap: %.200q is not a module specifier", specifier)
		}
		for _, name := range names {
			if !validName().MatchString(name) {
				return fmt.Errorf("wrap: %.100q is not a valid name of an export", name)
			}
		}
	}
	return nil
}

// reader reads an adapter once.
type reader struct {
	turn  *semaphore.Weighted // of one
	known bool
	wraps wraps
}

// wrapped returns the exports that the adapter wraps. Reading them also warms up the zygote, so that
// the first snippet need not wait for it.
func (r *Runner) wrapped(ctx context.Context) (wraps, error) {
	if err := r.reader.turn.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer r.reader.turn.Release(1)
	if r.reader.known {
		return r.reader.wraps, nil
	}
	w, err := r.readAdapter(ctx)
	if err != nil {
		return nil, err
	}
	r.reader.wraps, r.reader.known = w, true
	return w, nil
}

// readAdapter loads the adapter in a sandbox, and lists the exports that it wraps.
func (r *Runner) readAdapter(ctx context.Context) (w wraps, err error) {
	code, err := guestProgram{Adapter: r.adapter.Code}.module("inspect")
	if err != nil {
		return nil, err
	}
	err = r.sandboxes.use(ctx, func(rt *runtime.NodeRuntime) error {
		e, err := rt.Evaluate(ctx, code, runtime.EvaluateOptions{Module: true})
		if err != nil {
			return err
		}
		if err := e.Decode(&w); err != nil {
			return fmt.Errorf("adapter %s: %w", r.adapter.Name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := w.validate(); err != nil {
		return nil, fmt.Errorf("adapter %s: %w", r.adapter.Name, err)
	}
	return w, nil
}
