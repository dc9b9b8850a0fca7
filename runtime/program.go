package runtime

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"gaol/internal/snippet"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/sandbox"
	"gaol/vfs"
)

// ModuleFormat is the module format of a program.
type ModuleFormat int

const (
	// FormatAuto is for code that is given as text: an ES module, unless the code uses a
	// name that only CommonJS has (require, module, exports, __filename or __dirname) and
	// nothing that only ES modules have: an import or export declaration, import.meta or
	// top-level await. Such a name counts only as a variable that neither the code nor
	// Options.Bindings declare, not in strings, comments, properties or parameters.
	FormatAuto ModuleFormat = iota

	// FormatESM is an ES module.
	FormatESM

	// FormatCommonJS is CommonJS: not in strict mode, with require, and without top-level
	// await.
	FormatCommonJS

	// FormatDetect is for the text of a file: CommonJS, unless the code uses something that
	// only ES modules have. Node treats a .js file like this if no package.json gives its
	// type.
	FormatDetect
)

// String returns the format's name on the command line.
func (f ModuleFormat) String() string {
	return nameOf(f, "auto", "esm", "cjs", "detect")
}

// formats has Node's names.
var formats = map[ModuleFormat]string{FormatESM: "module", FormatCommonJS: "commonjs"}

// endings maps the ending of a file name to the format that it implies; FormatAuto: none.
var endings = map[string]ModuleFormat{
	".mjs": FormatESM, ".mts": FormatESM,
	".cjs": FormatCommonJS, ".cts": FormatCommonJS,
	".js": FormatAuto, ".ts": FormatAuto, ".tsx": FormatAuto, ".jsx": FormatAuto,
}

// nodeProgram lowers a Node program. With hasValue it can return one.
func nodeProgram(code string, hasValue bool) lowering {
	return func(ctx context.Context, s settings, o RunOptions) (*task, error) {
		if s.noNode != nil {
			return nil, fmt.Errorf("%w: %w", s.noNode, ErrUnsupported)
		}
		t, err := s.newTask(o)
		if err == nil {
			err = s.chooseLauncher(t)
		}
		if err == nil {
			err = s.addProgram(ctx, t, code, o)
		}
		if err != nil {
			return nil, err
		}
		if hasValue {
			t.program.Value = s.Limits.Value
		}
		t.main = &cell{maxValue: t.program.Value} // 0 refuses values
		return t, nil
	}
}

// chooseLauncher makes the task a new Node process if a forked one would ignore a variable.
func (s settings) chooseLauncher(t *task) error {
	name := startVariable(t.command.Env)
	if name == "" {
		return nil
	}
	permissions, plan := s.Permissions, s.plan
	if t.rules != nil {
		permissions, plan = t.rules.Permissions, t.rules.Plan
	}
	if !s.mayStartNode(permissions, plan) {
		return optionError("Env", "Node reads %s when it starts, which requires a separate Node, and %s is not among the programs that may be started: %w", name, s.nodePath(), ErrUnsupported)
	}
	t.startNode("Node reads the variable " + name + " when it starts")
	return nil
}

// addProgram adds the code of a Node program to a task.
func (s settings) addProgram(ctx context.Context, t *task, code string, o RunOptions) error {
	if len(code) > maxProgram {
		return fmt.Errorf("the program has %d bytes, the limit is %d", len(code), maxProgram)
	}
	if err := s.verifySchemas(ctx); err != nil {
		return err
	}
	p, err := s.newProgram(ctx, code, o)
	if err != nil {
		return err
	}
	base := string(t.dir.Join(p.Path))
	switch {
	case path.IsAbs(p.Path):
		base = p.Path // the caller has chosen it
	case s.evaluate != nil || s.context != nil: // a snippet or cell is no file
		p.Path = base
	default:
		p.Path, p.Base, p.Source = path.Join(sandbox.ProgramDir, t.folder, p.Path), base, code
	}
	if !utf8.ValidString(base) {
		return fmt.Errorf("the program's path %q is not UTF-8", base)
	}
	if p.Globals, err = s.bindings.Values(); err != nil {
		return err
	}
	for i, f := range s.bindings.Functions {
		p.Functions = append(p.Functions, f.Path)
		if f.Async {
			p.Async = append(p.Async, i)
		}
	}
	p.TypeScript = s.context != nil || mayImportTypeScript(o.Name, code, s.evaluate != nil)
	p.Args, p.BigInts, p.Evaluate, p.Context = s.Calls.Arguments, s.BigInts, s.evaluate, s.context
	t.program, t.functions, t.calls = p, s.checkedFunctions(), s.Calls
	c := &t.command
	c.Path, c.HeapMiB = s.nodePath(), s.heapMiB
	// Node looks for a package.json in the folder where it preloads a module, and then remembers for good that
	// there is none (nodejs/node#60425). Variables such as NODE_OPTIONS may have paths relative to Dir.
	if c.FromRoot = startVariable(c.Env) == "" && utf8.ValidString(c.Dir); c.FromRoot {
		p.Dir = c.Dir
	}
	c.Args = slices.Concat(heapFlags(s.heapMiB), []string{"--require=" + guest.Prelude, base}, o.Args) // other runs may see the command line: it must not show Path
	c.Script = len(c.Args) - len(o.Args)                                                               // counted from 1: the program's path
	return nil
}

// newProgram translates a program's code to JavaScript and determines its format. Path is o.Name, or
// the default name if that is empty.
func (s settings) newProgram(ctx context.Context, code string, o RunOptions) (*guest.Program, error) {
	given, asked := o.Name, o.Format
	dir, name := path.Split(cmp.Or(given, defaultName))
	fixed, known := endings[path.Ext(name)]
	if !known || !isFolderPath(dir) || strings.ContainsRune(name, 0) || len(name) > 255 {
		return nil, optionError("Name", "%q is not a file name or absolute path that ends in .mjs, .js, .cjs, .mts, .ts, .cts, .tsx or .jsx", given)
	}
	if given == "" {
		fixed = FormatAuto
	}
	switch {
	case asked < FormatAuto || asked > FormatDetect:
		return nil, optionError("Format", "format %d is not valid", asked)
	case fixed == FormatAuto:
	case formats[asked] != "" && asked != fixed:
		return nil, optionError("Format", "%s contradicts the ending of %q", asked, name)
	default:
		asked = fixed
	}
	p, err := s.translate(ctx, name, code, asked == FormatCommonJS) // first, because import may only name types
	if err != nil {
		return nil, err
	}
	if asked, err = s.detect(ctx, p.Code, asked); err != nil {
		return nil, err
	}
	format := formats[asked]
	if given == "" && format == formats[FormatCommonJS] {
		p.Path = defaultCommonJS
	}
	p.Format = format + p.Format
	p.Path = dir + p.Path
	return p, nil
}

// isFolderPath reports whether dir is the folder of an absolute path, or empty.
func isFolderPath(dir string) bool {
	if dir == "" || dir == "/" {
		return true
	}
	_, err := vfs.ParsePath(strings.TrimSuffix(dir, "/"))
	return err == nil
}

// translate turns TypeScript and JSX into JavaScript. Code that esbuild refuses becomes a
// program that throws the error. Code that is too large for esbuild is left to Node, which
// can strip types: Format then ends with Node's suffix for TypeScript.
func (s settings) translate(ctx context.Context, name, code string, commonJS bool) (*guest.Program, error) {
	p := &guest.Program{Path: name, Code: strings.TrimPrefix(code, "\ufeff")} // Node, too, ignores a byte order mark
	if !snippet.Translates(name) {
		return p, nil
	}
	script, err := s.work.Translate(ctx, name, code, commonJS)
	syntax, invalid := errors.AsType[*snippet.SyntaxError](err)
	switch {
	case err == nil:
		p.Code, p.Mapped = script, true
	case !invalid:
		return nil, err
	case syntax.Limit && !strings.HasSuffix(name, "x"):
		p.Format = "-typescript"
	default:
		p.Code, p.Mapped = syntax.Program(name), true
	}
	return p, nil
}

// detect decides between ES module and CommonJS.
func (s settings) detect(ctx context.Context, code string, asked ModuleFormat) (ModuleFormat, error) {
	auto := asked == FormatAuto
	if !auto && asked != FormatDetect {
		return asked, nil
	}
	if auto && !snippet.MentionsCommonJS(code) { // most programs: they need not be parsed
		return FormatESM, nil
	}
	syntax, err := s.work.SyntaxOf(ctx, code, s.bindings.Has)
	if syntax.Module || auto && !syntax.CommonJS {
		return FormatESM, err
	}
	return FormatCommonJS, err
}

// programs names the folders of a sandbox's programs.
type programs struct{ count atomic.Int64 }

// next returns a new name: a number, with a suffix that no guest can guess if secret is set.
func (p *programs) next(secret bool) string {
	name := strconv.FormatInt(p.count.Add(1), 10)
	if secret {
		name += "-" + strings.ToLower(rand.Text()[:16]) // 80 bits
	}
	return name
}

// addFile writes the run's program, if it is a file.
func (r *activeRun) addFile() error {
	p := r.task.program
	if p == nil || p.Base == "" {
		return nil
	}
	file := sandbox.File{Path: path.Base(p.Path), Mode: 0o444, Data: []byte(p.Source)}
	err := r.rt.sandbox.AddProgram(r.task.folder, file, path.Join(path.Dir(p.Base), "node_modules"))
	r.hasFile = err == nil
	p.Source = ""
	return err
}

// removeFile undoes addFile.
func (r *activeRun) removeFile() {
	if r.hasFile {
		r.hasFile = false
		_ = r.rt.sandbox.RemoveProgram(r.task.folder, path.Base(r.task.program.Path)) // fails only if the sandbox is closed
	}
}
