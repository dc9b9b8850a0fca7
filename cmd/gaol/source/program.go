package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gaol/cmd/gaol/report"
	"gaol/internal/snippet"
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
		return p, codeError("run", err)
	}
	defer file.Close()
	p = Program{Name: guestName(path), Format: format}
	if p.Code, err = readCode(ctx, "run", file, path); err == nil && format == runtime.FormatAuto {
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
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			return false, nil
		}
		text, err := readAtMost(name, maxPackage)
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

// guestName returns the name in the guest of the file at path. Its ending selects
// the language. A file without one, such as /dev/fd/63 from a shell's <(...), gets
// the default name.
func guestName(path string) string {
	name := filepath.Base(path)
	if filepath.Ext(name) == "" {
		return ""
	}
	return name
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
		one, found, err := packageFormat(filepath.Join(dir, "package.json"))
		if found {
			format = one
		}
		return found, err
	})
	return format, err
}

// maxPackage is the longest package.json that is read.
const maxPackage = 1 << 20

// packageFormat reads the type in a package.json. Like Node, it ignores a file that
// cannot be opened.
func packageFormat(path string) (format runtime.ModuleFormat, found bool, err error) {
	info, err := os.Stat(path) // before Open, which blocks for a FIFO
	if err != nil || !info.Mode().IsRegular() {
		return 0, false, nil
	}
	text, err := readAtMost(path, maxPackage)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	var description map[string]any
	if err == nil {
		err = json.Unmarshal(text, &description)
	}
	if err != nil {
		return 0, false, report.Advise(fmt.Errorf("run: %s is no valid package.json: %w", path, err), "repair it, or say --format esm or --format cjs")
	}
	switch description["type"] {
	case "module":
		return runtime.FormatESM, true, nil
	case "commonjs":
		return runtime.FormatCommonJS, true, nil
	}
	return runtime.FormatDetect, true, nil
}
