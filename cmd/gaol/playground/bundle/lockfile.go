package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"gaol/rootfs/npm"
)

// dependency is a package that the page needs.
type dependency struct {
	npm.Package
	folder string // such as node_modules/@codemirror/view
}

// lockFile is the part of a package-lock.json that is used.
type lockFile struct {
	Version  int `json:"lockfileVersion"`
	Packages map[string]struct {
		Name      string `json:"name"` // set if it differs from the folder's
		Version   string `json:"version"`
		Integrity string `json:"integrity"`
		Dev       bool   `json:"dev"`
	} `json:"packages"`
}

// packageName is the form of a package's name, with or without a scope.
var packageName = regexp.MustCompile(`^(@[a-z0-9][\w.-]*/)?[a-z0-9][\w.-]*$`)

// readLock returns the dependencies in a package-lock.json, without those for development.
func readLock(path string) ([]dependency, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lock lockFile
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if lock.Version != 3 {
		return nil, fmt.Errorf("%s: lockfileVersion %d: want 3", path, lock.Version)
	}
	var list []dependency
	for _, folder := range slices.Sorted(maps.Keys(lock.Packages)) {
		p := lock.Packages[folder]
		if folder == "" || p.Dev {
			continue
		}
		at := strings.LastIndex(folder, nodeModules)
		if at < 0 || !strings.HasPrefix(folder, nodeModules) || !fs.ValidPath(folder) {
			return nil, fmt.Errorf("%s: folder %q: %w", path, folder, errors.ErrUnsupported)
		}
		name := cmp.Or(p.Name, folder[at+len(nodeModules):])
		if !packageName.MatchString(name) {
			return nil, fmt.Errorf("%s: name %q: %w", path, name, errors.ErrUnsupported)
		}
		found, err := npm.Pins{name + "@" + p.Version: p.Integrity}.Find(name, p.Version)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, dependency{found, folder})
	}
	return list, nil
}

const nodeModules = "node_modules/"
