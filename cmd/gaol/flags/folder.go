package flags

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/report"
)

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
