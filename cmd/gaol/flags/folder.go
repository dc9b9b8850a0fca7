package flags

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mainFiles are the main modules of a folder whose package.json names none.
var mainFiles = []string{"index.js", "index.mjs", "index.cjs", "index.ts", "index.mts", "index.cts"}

// MainFile returns the path of a folder's main module: the main of its package.json, or else index.
func MainFile(dir string) (string, error) {
	names := mainFiles
	main, err := packageMain(dir)
	if err != nil {
		return "", err
	}
	if main != "" {
		if !filepath.IsLocal(main) {
			return "", fmt.Errorf("run: %s: main %q is not in the folder", filepath.Join(dir, "package.json"), main)
		}
		names = slices.Concat([]string{main, main + ".js"}, prefixed(main, mainFiles), mainFiles)
	}
	for _, name := range names {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file, nil
		}
	}
	return "", fmt.Errorf("run: %s: no main in package.json and no index.js, .mjs, .cjs, .ts, .mts or .cts", dir)
}

func prefixed(dir string, names []string) (out []string) {
	for _, name := range names {
		out = append(out, filepath.Join(dir, name))
	}
	return out
}

func packageMain(dir string) (string, error) {
	file := filepath.Join(dir, "package.json")
	info, err := os.Stat(file) // before Open, which blocks for a FIFO
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	var text []byte
	if err == nil {
		text, err = readAtMost(file, maxPackage)
	}
	var p struct {
		Main any `json:"main"`
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return "", fmt.Errorf("run: %s: %w", file, err)
	}
	main, _ := p.Main.(string) // Node ignores other types
	return main, nil
}

func readAtMost(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("longer than %d bytes", most)
	}
	return text, err
}

// InFolder returns p with the name that its file has in the guest, where the host's folder dir is
// mounted at target.
func (p Program) InFolder(file, dir, target string) (Program, error) {
	rel, err := filepath.Rel(dir, file)
	if err == nil && !filepath.IsLocal(rel) {
		err = errors.New("not in the folder")
	}
	if err != nil {
		return p, fmt.Errorf("run: %s: %w", file, err)
	}
	p.Name = path.Join(target, filepath.ToSlash(rel))
	return p, nil
}

// MissingSibling returns the specifier in the message of an error for a relative import that the
// host has beside file, or "".
func MissingSibling(file, cwd, message string) string {
	_, rest, found := strings.Cut(message, "Cannot find module '")
	name, _, ended := strings.Cut(rest, "'")
	endings := []string{"", ".ts", ".tsx", ".js", ".json"}                              // that require and TypeScript add
	if rel, below := strings.CutPrefix(name, strings.TrimSuffix(cwd, "/")+"/"); below { // an import's error
		name, endings = "./"+rel, endings[:3]
	}
	if !found || !ended || !strings.HasPrefix(name, "./") && !strings.HasPrefix(name, "../") {
		return ""
	}
	at := filepath.Join(filepath.Dir(file), name)
	for _, ending := range endings {
		if _, err := os.Stat(at + ending); err == nil {
			return name
		}
	}
	if _, err := os.Stat(strings.TrimSuffix(at, ".js") + ".ts"); err == nil {
		return name
	}
	return ""
}
