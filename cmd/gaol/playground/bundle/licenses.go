package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licenses are those of what esbuild has put into the page.
type licenses struct {
	folders  map[string]bool // of packages, such as node_modules/crelt
	comments []string        // that are marked as legal in the source
}

// inPackage matches the folder of the innermost package that a file is in.
var inPackage = regexp.MustCompile(`^.*?/?(node_modules/(?:.*/node_modules/)?(?:@[^/]+/)?[^/]+)/`)

// add adds the packages of an esbuild metafile. Those without any byte in the outputs count, too.
func (l *licenses) add(metafile string) error {
	var meta struct {
		Inputs map[string]struct{} `json:"inputs"`
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return err
	}
	if l.folders == nil {
		l.folders = map[string]bool{}
	}
	for path := range meta.Inputs {
		if found := inPackage.FindStringSubmatch(path); found != nil {
			l.folders[found[1]] = true
		}
	}
	return nil
}

// text returns the licences of all packages, which are below dir. Each must have one.
func (l *licenses) text(dir string) ([]byte, error) {
	out := []byte("The playground's page contains these packages.\n")
	for _, folder := range slices.Sorted(maps.Keys(l.folders)) {
		var about struct{ Name, Version, License string }
		text, err := os.ReadFile(filepath.Join(dir, folder, "package.json"))
		if err == nil {
			err = json.Unmarshal(text, &about)
		}
		if err != nil {
			return nil, err
		}
		license, err := licenseFile(filepath.Join(dir, folder))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
		out = fmt.Appendf(out, "\n%s\n%s %s (%s)\n\n%s\n", rule, about.Name, about.Version, cmp.Or(about.License, "see below"), license)
	}
	for _, c := range l.comments {
		out = fmt.Appendf(out, "\n%s\n%s\n", rule, strings.TrimSpace(c))
	}
	return out, nil
}

var rule = strings.Repeat("-", 72)

// licenseFile returns the text of a package's licence.
func licenseFile(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if name := strings.ToUpper(e.Name()); e.Type().IsRegular() && (strings.HasPrefix(name, "LICENSE") || strings.HasPrefix(name, "LICENCE")) {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			return strings.TrimSpace(string(text)), err
		}
	}
	return "", fmt.Errorf("licence: %w", fs.ErrNotExist)
}
