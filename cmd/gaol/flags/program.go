package flags

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/report"
	"gaol/internal/snippet"
	"gaol/internal/strictjson"
	"gaol/policy"
	"gaol/runtime"
)

// Program is a file of code.
type Program struct {
	Name   string // the file's name in the guest, or "" for the default
	Code   string
	Format runtime.ModuleFormat
}

// ProgramFile reads a program. If format is FormatAuto, it finds the format as Node
// does: from the ending, from the nearest package.json, or from the syntax.
func ProgramFile(ctx context.Context, path string, format runtime.ModuleFormat) (p Program, err error) {
	file, err := os.Open(path)
	if err != nil {
		return p, codeError(ctx, "run", err)
	}
	defer file.Close()
	p = Program{Name: filepath.Base(path), Format: format} // the ending selects the language
	if filepath.Ext(p.Name) == "" {                        // such as /dev/fd/63 from a shell's <(...)
		p.Name = ""
	}
	code, err := Read(ctx, file, path, MaxCode)
	p.Code, err = string(code), codeError(ctx, "run", err)
	if err == nil && format == runtime.FormatAuto {
		p.Format, err = moduleFormat(file)
	}
	if err == nil && snippet.Translates(path) && strings.Contains(p.Code, "@") {
		err = p.addDecorators(file)
	}
	return p, err
}

// addDecorators adds comments to the code that select the decorators of the nearest tsconfig.json.
func (p *Program) addDecorators(file *os.File) error {
	path, err := realPath(file)
	if err != nil || !filepath.IsAbs(path) { // such as a pipe
		return err
	}
	return above(path, func(dir string) (found bool, err error) {
		name := filepath.Join(dir, "tsconfig.json")
		text, err := ReadFile(name, maxPackage, nil)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
			return false, nil
		}
		if err != nil {
			return true, fmt.Errorf("run: %s: %w", name, err)
		}
		p.Code += snippet.Pragmas(string(text))
		return true, nil
	})
}

// realPath returns the path of a file without symbolic links.
func realPath(file *os.File) (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
}

// above calls f with the folders above a path, until f finds something.
func above(path string, f func(dir string) (found bool, err error)) error {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if found, err := f(dir); found || err != nil || dir == filepath.Dir(dir) {
			return err
		}
	}
}

// moduleFormat finds a file's format from the type in the nearest package.json, and
// without one leaves it to the file's syntax. It follows symbolic links, as Node
// does. If the ending selects the format, it returns FormatAuto, for which the
// runtime looks at the ending.
func moduleFormat(file *os.File) (format runtime.ModuleFormat, err error) {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() { // such as the pipe of /dev/fd/63
		return runtime.FormatAuto, err
	}
	path, err := realPath(file)
	if err != nil {
		return 0, err
	}
	switch filepath.Ext(path) {
	case ".mjs", ".cjs", ".mts", ".cts":
		return runtime.FormatAuto, nil
	}
	format = runtime.FormatDetect
	err = above(path, func(dir string) (found bool, err error) {
		if filepath.Base(dir) == "node_modules" { // Node does not look above it either
			return true, nil
		}
		description, found, err := packageJSON(filepath.Join(dir, "package.json"))
		switch description["type"] {
		case "module":
			format = runtime.FormatESM
		case "commonjs":
			format = runtime.FormatCommonJS
		}
		return found, err
	})
	return format, err
}

// maxPackage is the longest package.json that is read.
const maxPackage = 1 << 20

// packageJSON reads a package.json. Like Node, it ignores a file that cannot be opened.
func packageJSON(path string) (description map[string]any, found bool, err error) {
	text, err := ReadFile(path, maxPackage, nil)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
		return nil, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &description)
	}
	if err != nil {
		return nil, false, report.Advise(fmt.Errorf("run: %s is not a valid package.json: %w", path, err), "repair it, or use --format esm or --format cjs")
	}
	return description, true, nil
}

// MaxCode is the most bytes of code that are read. Bundles have some megabytes; a longer file
// is not a program, and would fill gaol's memory.
const MaxCode = 16 << 20

// IsPiped reports whether stdin may have text to read: it is a pipe, a socket or a
// regular file, and neither a terminal nor /dev/null. Reading a terminal that the user has
// not mentioned would look as if gaol hung.
func IsPiped(stdin io.Reader) bool {
	file, ok := stdin.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0)
}

// Code reads code from the file at path, or from stdin if path is "-". Errors start
// with verb, such as "evaluate".
func Code(ctx context.Context, verb, path string, stdin io.Reader) (string, error) {
	code, _, err := Input(ctx, path, stdin, MaxCode)
	return string(code), codeError(ctx, verb, err)
}

// codeError adds advice to an error, unless the user has canceled the reading.
func codeError(ctx context.Context, verb string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return report.Advise(fmt.Errorf("%s: %w", verb, err), "give a file of JavaScript, - or -e CODE")
}

// Input reads the file at path, or stdin if path is "-", unless it is longer than limit. Name is what
// errors call it.
func Input(ctx context.Context, path string, stdin io.Reader, limit int64) (text []byte, name string, err error) {
	if path == "-" {
		text, err = Read(ctx, stdin, "standard input", limit)
		return text, "standard input", err
	}
	text, err = readFile(ctx, path, limit)
	return text, path, err
}

func readFile(ctx context.Context, path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return Read(ctx, file, path, limit)
}

// Read reads all of r, which errors call name, unless it is longer than limit. It
// returns when ctx is canceled, even if a Read of r never returns.
func Read(ctx context.Context, r io.Reader, name string, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(report.Reader(ctx, r), limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("more than %s", report.FormatSize(limit))
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, report.WithoutPath(err))
	}
	return text, nil
}

// maxGlobals is the most that package runtime accepts.
const maxGlobals = 16 << 20

// Globals reads the file of --globals, a JSON object. It returns nil for the path "". The
// values stay JSON, so that large numbers keep all their digits on the way to the guest.
func Globals(ctx context.Context, path string) (map[string]any, error) {
	if path == "" {
		return nil, nil
	}
	text, err := readFile(ctx, path, maxGlobals)
	if err != nil {
		return nil, fmt.Errorf("--globals: %w", err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return nil, report.Advise(fmt.Errorf("--globals %s: not a JSON object", path), `such as {"items": [1, 2]}`)
	}
	return strictjson.Values(members), nil
}

// Policy parses permissions in a text that errors call name.
func Policy(text []byte, name string) (policy.Permissions, error) {
	p, err := policy.Parse(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return p, err
}

// mainFiles are the main modules of a folder whose package.json names none.
var mainFiles = []string{"index.js", "index.mjs", "index.cjs", "index.ts", "index.mts", "index.cts"}

// MainFile returns the path of a folder's main module: the main of its package.json, or else index.
func MainFile(dir string) (string, error) {
	description, _, err := packageJSON(filepath.Join(dir, "package.json"))
	if err != nil {
		return "", err
	}
	names := mainFiles
	if main, _ := description["main"].(string); main != "" { // Node ignores values that are not strings
		if !filepath.IsLocal(main) {
			return "", fmt.Errorf("run: %s: main %q is not in the folder", filepath.Join(dir, "package.json"), main)
		}
		names = []string{main, main + ".js"}
		for _, folder := range []string{main, "."} {
			for _, name := range mainFiles {
				names = append(names, filepath.Join(folder, name))
			}
		}
	}
	for _, name := range names {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file, nil
		}
	}
	return "", fmt.Errorf("run: %s: no main in package.json and no index.js, .mjs, .cjs, .ts, .mts or .cts", dir)
}

var errNotRegular = errors.New("it is not a regular file")

// ReadFile reads a regular file of at most most bytes. Check may refuse it, and may be nil. Errors
// lack the path.
func ReadFile(path string, most int64, check func(fs.FileInfo) error) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO does not block
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err == nil && check != nil {
		err = check(info)
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("more than %s", report.FormatSize(most))
	}
	return text, err
}
