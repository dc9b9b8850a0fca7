package runtime

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"math/bits"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"gaol/internal/snippet"
	"gaol/policy"
	"gaol/runtime/internal/enforce"
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

// code returns a program for Node that can return a value.
func (rt *NodeRuntime) code(code string) *Process {
	return &Process{code: &guest.Program{Code: code, Value: rt.opts.Limits.Value}}
}

// imageProgram returns a program of the image.
func imageProgram(name string, args []string) *Process {
	p := &Process{}
	p.command.Args = append([]string{name}, args...)
	return p
}

// lower completes the description of the process to start by the options of its run. ctx bounds the work
// on the code.
func (p *Process) lower(ctx context.Context, s settings, o RunOptions) error {
	if p.code == nil {
		return p.lowerCommand(s, o)
	}
	if s.noNode != nil {
		return fmt.Errorf("%w: %w", s.noNode, ErrUnsupported)
	}
	if len(p.globals) > 0 || p.heap != 0 {
		given, err := s.newBindings(p.globals)
		if err != nil {
			return optionError("Globals", "%w", err)
		}
		s.bindings = s.bindings.Overlay(given)
		if p.heap != 0 {
			s.heapMiB = p.heap >> 20
		}
	}
	env, err := p.lowerOptions(s, o)
	if err == nil {
		err = p.chooseLauncher(s, env.start)
	}
	if err == nil && p.code.Evaluate != nil && !p.main.logs.options.Module {
		err = p.compile(ctx, s)
	}
	if err == nil {
		err = p.addCode(ctx, s, o)
	}
	if err != nil {
		return err
	}
	c := &p.command
	// Node looks for a package.json in the folder where it preloads a module, and then remembers for good that
	// there is none (nodejs/node#60425). Variables such as NODE_OPTIONS may have paths relative to Dir.
	if c.FromRoot = env.start == "" && utf8.ValidString(c.Dir); c.FromRoot {
		p.code.Dir = c.Dir
	}
	p.limits.Calls = cmp.Or(p.maxCalls, p.limits.Calls)
	if p.cells == nil {
		p.main = cmp.Or(p.main, &cell{})
		p.main.maxValue = p.code.Value // 0 refuses values
	}
	return nil
}

// lowerCommand lowers a program of the image.
func (p *Process) lowerCommand(s settings, o RunOptions) error {
	if name := p.command.Args[0]; name == "" || strings.ContainsRune(name, 0) {
		return fmt.Errorf("command %q: no program's name", name)
	}
	if len(o.Args) > 0 {
		return optionError("Args", "a command's arguments are Command's own")
	}
	o.Args = p.command.Args[1:]
	_, err := p.lowerOptions(s, o)
	return cmp.Or(err, p.checkExec(s))
}

// lowerOptions lowers the options that all programs have.
func (p *Process) lowerOptions(s settings, o RunOptions) (env environment, err error) {
	c := &p.command
	p.launcher, p.limits, p.args, p.egress = s.Launcher, s.Calls, o.Args, o.Network
	p.permissions, p.folder = s.Permissions, p.rt.programs.next(s.plan.Restricts)
	cwd := s.cwd
	if o.Cwd != "" {
		if cwd, err = parseCwd(o.Cwd); err != nil {
			return env, err
		}
	}
	c.Dir = string(cwd)
	if err := o.check(); err != nil {
		return env, err
	}
	var own *policy.Permissions
	if !o.Permissions.IsZero() {
		if p.permissions, c.Plan, err = s.narrowed(o.Permissions, p.folder); err != nil {
			return env, optionError("Permissions", "%w", err)
		}
		own = &p.permissions
	}
	if env = *s.variables; len(o.Env) > 0 || own != nil {
		env, err = s.environment(o.Env, own)
	}
	c.Env = env.list
	return env, err
}

// parseCwd parses an option Cwd.
func parseCwd(cwd string) (vfs.Path, error) {
	at, err := vfs.ParsePath(cwd)
	return at, ofOption("Cwd", err)
}

// check checks the options that do not depend on the runtime's.
func (o RunOptions) check() error {
	if o.Network != (NetworkLimits{}) {
		if err := fill(&o.Network, false); err != nil {
			return optionError("Network", "%w", err)
		}
	}
	if o.OnEvent != nil && (o.OnStdout != nil || o.OnStderr != nil) {
		return optionError("OnEvent", "the events include the output: omit OnStdout and OnStderr")
	}
	if o.OnOutputLimit < TruncateOutput || o.OnOutputLimit > KillOnOutput {
		return optionError("OnOutputLimit", "action %d is not valid", o.OnOutputLimit)
	}
	if len(o.Args) > 0 {
		return checkArgs(o.Args)
	}
	return nil
}

// chooseLauncher makes the run a new Node process, although the runtime forks others, if a forked one would
// ignore a variable or the terminal.
func (p *Process) chooseLauncher(s settings, variable string) error {
	if variable != "" {
		if !s.mayStartNode(p.permissions, cmp.Or(p.command.Plan, s.plan)) {
			return optionError("Env", "Node reads %s when it starts, which requires a separate Node, and %s is not among the programs that may be started: %w", variable, s.nodePath(), ErrUnsupported)
		}
		variable = "Node reads the variable " + variable + " when it starts"
	} else if p.command.Terminal {
		variable = "the program uses a terminal, and the streams of a forked Node are pipes"
	}
	if variable != "" && p.launcher == LauncherZygote {
		p.launcher, p.reason = LauncherExec, variable
	}
	return p.checkExec(s)
}

// checkExec returns an error if the isolation cannot execute the program, unless that is forked.
func (p *Process) checkExec(s settings) error {
	if p.code != nil && p.launcher == LauncherZygote {
		return nil
	}
	return ofOption("Permissions", s.Isolation.checkExec(cmp.Or(p.command.Plan, s.plan)))
}

// addCode adds the code of a Node program.
func (p *Process) addCode(ctx context.Context, s settings, o RunOptions) error {
	code, c, text := p.code, &p.command, p.code.Code
	if len(text) > maxProgram {
		return fmt.Errorf("the program has %d bytes, the limit is %d", len(text), maxProgram)
	}
	if len(s.bindings.Functions) > 0 {
		if err := s.verifySchemas(ctx); err != nil {
			return err
		}
		p.functions = s.checkedFunctions()
	}
	if o.Name != "" && snippet.Translates(path.Base(o.Name)) && strings.Contains(text, "@") {
		code.Code += p.rt.decorators(path.Dir(programPath(c.Dir, o.Name)))
	}
	err := s.prepareCode(ctx, code, o)
	if err != nil {
		return err
	}
	base := programPath(c.Dir, code.Path)
	switch {
	case path.IsAbs(code.Path): // the caller has chosen it
	case code.Evaluate != nil || code.Context != nil: // a snippet or cell is no file
		code.Path = base
	default:
		if c.Plan != nil || p.launcher != LauncherZygote || mayOpenItself(text) { // a plan names the folder; NODE_OPTIONS may open the file
			c.File = &sandbox.ProgramFile{Folder: p.folder, Name: code.Path, Text: []byte(text), Packages: path.Join(path.Dir(base), "node_modules")}
		}
		code.Path, code.Base = path.Join(sandbox.ProgramDir, p.folder, code.Path), base
	}
	if !utf8.ValidString(base) {
		return fmt.Errorf("the program's path %q is not UTF-8", base)
	}
	if code.Globals, err = s.bindings.Values(); err != nil {
		return err
	}
	for i, f := range p.functions {
		code.Functions = append(code.Functions, f.Path)
		if f.Async {
			code.Async = append(code.Async, i)
		}
	}
	code.TypeScript = code.Context != nil || mayImportTypeScript(o.Name, text, code.Evaluate != nil)
	code.Args, code.BigInts = s.Calls.Arguments, s.BigInts
	if s.heapMiB != p.rt.opts.heapMiB {
		c.WarmArgs = s.warmArgs()
	}
	// Other runs may see the command line: it must not show Path.
	c.Args = slices.Concat([]string{s.nodePath()}, heapFlags(s.heapMiB), []string{"--require=" + guest.Prelude, base}, o.Args)
	if p.launcher == LauncherZygote {
		c.Script = len(c.Args) - len(o.Args) - 1 // the program's path
	}
	return nil
}

// mayOpenItself reports whether a program may open its own file. Writing the file takes 3 % of a short run, and
// programs that only compute or call host functions do not need it.
func mayOpenItself(text string) bool {
	return containsAny(text, "import", "require", "process", "module", "__dirname", "__filename", "eval", "Function", "constructor")
}

func containsAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// programPath returns the path from which a program imports.
func programPath(dir, name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(dir, name)
}

// mayImportTypeScript reports whether a program may import TypeScript files. JavaScript imports them
// by their extension. The check is quick, so that other programs are not slowed down.
func mayImportTypeScript(name, code string, isSnippet bool) bool {
	return containsAny(code, ".ts", ".mts", ".cts") ||
		(isSnippet || name != "" && snippet.Translates(path.Base(name))) && strings.Contains(code, "./")
}

// prepareCode translates a program's code to JavaScript and determines its format. Path becomes o.Name, or
// the default name if that is empty.
func (s settings) prepareCode(ctx context.Context, p *guest.Program, o RunOptions) error {
	given, asked := o.Name, o.Format
	dir, name := path.Split(cmp.Or(given, defaultName))
	fixed, known := endings[path.Ext(name)]
	if !known || dir != "" && !isFolderPath(dir) || strings.ContainsRune(name, 0) || len(name) > 255 {
		return optionError("Name", "%q is not a file name or absolute path that ends in .mjs, .js, .cjs, .mts, .ts, .cts, .tsx or .jsx", given)
	}
	if given == "" {
		fixed = FormatAuto
	}
	switch {
	case asked < FormatAuto || asked > FormatDetect:
		return optionError("Format", "format %d is not valid", asked)
	case fixed == FormatAuto:
	case formats[asked] != "" && asked != fixed:
		return optionError("Format", "%s contradicts the ending of %q", asked, name)
	default:
		asked = fixed
	}
	code := p.Code
	p.Path, p.Code = name, strings.TrimPrefix(code, "\ufeff") // Node, too, ignores a byte order mark
	if given != "" && snippet.Translates(name) {
		if err := s.translate(ctx, p, code, asked == FormatCommonJS); err != nil { // first, because import may only name types
			return err
		}
	}
	asked, err := s.detect(ctx, p.Code, asked)
	if err != nil {
		return err
	}
	format := formats[asked]
	if given == "" && format == formats[FormatCommonJS] {
		p.Path = defaultCommonJS
	}
	p.Format = format + p.Format
	p.Path = dir + p.Path
	return nil
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

// nodePath returns the guest path of Node.
func (s *settings) nodePath() string { return cmp.Or(s.node, enforce.NodePath) }

// Without flags V8 sizes its heap for the machine, and never below 256 MiB. docs/isolation.md
// explains how the flags are chosen, and which memory they do not limit.

// heapFlags returns V8's flags for an old space of the given size. The guest's preload
// resets them once the main thread has its heap, so that workers can set their own limits.
func heapFlags(oldMiB int64) []string {
	return []string{
		"--max-old-space-size=" + strconv.FormatInt(oldMiB, 10),
		"--max-semi-space-size=" + strconv.FormatInt(semiSpaceMiB(oldMiB), 10),
	}
}

const maxSemiSpace = 64 // MiB, V8's own limit on a large machine

// semiSpaceMiB returns the limit of one semi-space of the young generation: a power of
// two, as V8 rounds it, and at most an eighth of the old space.
func semiSpaceMiB(oldMiB int64) int64 {
	return 1 << (bits.Len64(uint64(min(max(oldMiB/8, 1), maxSemiSpace))) - 1)
}

// oldSpaceMiB returns the size of the old space for a memory limit in bytes. Node itself
// takes 40 MiB and the young generation up to three semi-spaces. With the rest V8 collects
// garbage, or reports a full heap, before the kernel has to kill the process.
func oldSpaceMiB(memory int64) int64 {
	const node, least = 40, 16
	for semi := int64(maxSemiSpace); semi > 1; semi /= 2 {
		old := memory>>20 - node - 3*semi
		if semi < maxSemiSpace {
			old = min(old, 16*semi-1) // above this, the next larger semi-space applies
		}
		if semiSpaceMiB(old) == semi {
			return max(old, least)
		}
	}
	return least
}
