package sharedlib

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// DefaultDirs lists the folders that may hold the C library, in an image or on the host.
var DefaultDirs = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
	"/lib64", "/usr/lib64", "/lib", "/usr/lib"}

// HostDirs returns the folders that the host's loader searches, in its order: those of the
// ld.so.conf file conf, then the default ones.
func HostDirs(conf string) ([]string, error) {
	dirs, err := readLdConf(conf, 0)
	return append(dirs, DefaultDirs...), err
}

// readLdConf reads an ld.so.conf file and the files that it includes. A missing file is
// empty.
func readLdConf(conf string, depth int) ([]string, error) {
	text, err := os.ReadFile(conf)
	if errors.Is(err, fs.ErrNotExist) || depth > 8 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var dirs []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		switch {
		case len(fields) == 1 && filepath.IsAbs(fields[0]):
			dirs = append(dirs, fields[0])
		case len(fields) > 1 && fields[0] == "include":
			more, err := readIncluded(filepath.Dir(conf), fields[1:], depth+1)
			if err != nil {
				return nil, err
			}
			dirs = append(dirs, more...)
		}
	}
	return dirs, nil
}

func readIncluded(base string, patterns []string, depth int) ([]string, error) {
	var dirs []string
	for _, pattern := range patterns {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(base, pattern)
		}
		files, err := filepath.Glob(pattern) // sorted
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			more, err := readLdConf(file, depth)
			if err != nil {
				return nil, err
			}
			dirs = append(dirs, more...)
		}
	}
	return dirs, nil
}
