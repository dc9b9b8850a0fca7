package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"gaol/runtime"
)

// moduleFormat is a flag's value.
type moduleFormat runtime.ModuleFormat

var moduleFormats = []runtime.ModuleFormat{runtime.FormatAuto, runtime.FormatESM, runtime.FormatCommonJS}

func (m *moduleFormat) Set(text string) error {
	for _, format := range moduleFormats {
		if text == format.String() {
			*m = moduleFormat(format)
			return nil
		}
	}
	return errors.New("want auto, esm or cjs")
}

func (m *moduleFormat) String() string { return runtime.ModuleFormat(*m).String() }

func (m *moduleFormat) Type() string { return "FORMAT" }

func (f *runFlags) moduleFormat() runtime.ModuleFormat { return runtime.ModuleFormat(f.format) }

// fileFormat is the format of a file as Node finds it: by the type in the nearest package.json,
// or without one by the file's syntax. An ending that says the format takes precedence in the
// runtime. Node looks where links lead.
func fileFormat(file *os.File) (runtime.ModuleFormat, error) {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() { // such as /dev/fd/63: it is text
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

// maxPackage bounds what is read of a package.json.
const maxPackage = 1 << 20

// packageFormat reads the type in a package.json, if there is one.
func packageFormat(path string) (format runtime.ModuleFormat, found bool, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0, false, nil // Node, too, takes no notice of what it can't read
	}
	file, err := os.Open(path)
	if err != nil {
		return 0, false, nil
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxPackage+1))
	if err == nil && len(text) > maxPackage {
		err = fs.ErrInvalid
	}
	var description map[string]any
	if err == nil {
		err = json.Unmarshal(text, &description)
	}
	if err != nil {
		return 0, false, &advisedError{fmt.Errorf("run: %s is no valid package.json: %w", path, err), "repair it, or say --format esm or --format cjs"}
	}
	switch description["type"] {
	case "module":
		return runtime.FormatESM, true, nil
	case "commonjs":
		return runtime.FormatCommonJS, true, nil
	}
	return runtime.FormatDetect, true, nil
}
