package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gaol/cmd/gaol/report"
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
	return p, err
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
func moduleFormat(file *os.File) (runtime.ModuleFormat, error) {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() { // such as the pipe of /dev/fd/63
		return runtime.FormatAuto, err
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		return 0, err
	}
	switch filepath.Ext(path) {
	case ".mjs", ".cjs", ".mts", ".cts":
		return runtime.FormatAuto, nil
	}
	// Node does not look above a node_modules folder either.
	for dir := filepath.Dir(path); filepath.Base(dir) != "node_modules"; dir = filepath.Dir(dir) {
		format, found, err := packageFormat(filepath.Join(dir, "package.json"))
		if found || err != nil {
			return format, err
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return runtime.FormatDetect, nil
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
