package oci

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"gaol/jail/procfs"
)

// generated returns the entries of /proc that files of the host replace. Runtimes refuse
// mounts over others.
func generated() (names []string) {
	for _, e := range procfs.RootEntries {
		if e.Source == procfs.Generated && e.Name != sysctls {
			names = append(names, e.Name)
		}
	}
	return names
}

const sysctls = "sys"

// masks returns the paths of /proc to mask: all that package procfs does not list. The
// sysctls that it lists are the kernel's own.
func masks() ([]string, error) {
	var shown []string
	for _, e := range procfs.RootEntries {
		if e.Name != sysctls {
			shown = append(shown, e.Name)
		}
	}
	for _, e := range procfs.Sysctls {
		shown = append(shown, sysctls+"/"+e.Name)
	}
	return unlisted("", shown)
}

// unlisted returns the entries of a folder below /proc, with a final slash or empty, that are
// not shown. Processes and links are no such entries.
func unlisted(dir string, shown []string) (paths []string, err error) {
	entries, err := os.ReadDir("/proc/" + dir)
	if errors.Is(err, fs.ErrNotExist) { // its module was unloaded
		return nil, nil
	}
	for _, e := range entries {
		path := dir + e.Name()
		switch {
		case slices.Contains(shown, path) || e.Type() == fs.ModeSymlink || dir == "" && strings.Trim(e.Name(), "0123456789") == "":
		case slices.ContainsFunc(shown, func(s string) bool { return strings.HasPrefix(s, path+"/") }):
			below, belowErr := unlisted(path+"/", shown)
			paths, err = append(paths, below...), errors.Join(err, belowErr)
		default:
			paths = append(paths, "/proc/"+path)
		}
	}
	return paths, err
}
