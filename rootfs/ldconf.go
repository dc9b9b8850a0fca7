package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// libraryDirs returns the folders that the host's loader looks into, in its
// order: those of ld.so.conf, then the ones built in.
func libraryDirs(conf string) ([]string, error) {
	dirs, err := readLdConf(conf, 0)
	if err != nil {
		return nil, err
	}
	for _, multiarch := range []string{"x86_64-linux-gnu", "aarch64-linux-gnu"} {
		dirs = append(dirs, "/lib/"+multiarch, "/usr/lib/"+multiarch)
	}
	return append(dirs, "/lib64", "/usr/lib64", "/lib", "/usr/lib"), nil
}

// readLdConf reads ld.so.conf and what it includes; a missing file is empty.
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
