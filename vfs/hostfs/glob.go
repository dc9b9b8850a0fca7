package hostfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"gaol/vfs"
)

// Glob returns the paths that match a pattern, sorted. A pattern is an absolute path whose
// elements are patterns of path.Match or "**", which matches zero or more folders. Glob
// follows only links before the first element with one of *?[\. It ignores folders that it
// cannot read, and finding no match is not an error. A malformed pattern is
// path.ErrBadPattern.
func (f *FS) Glob(pattern string) ([]string, error) {
	if _, err := vfs.ParsePath(pattern); err != nil {
		return nil, &fs.PathError{Op: "glob", Path: pattern, Err: errPath}
	}
	found, err := f.globIn("/", strings.Split(pattern[1:], "/"))
	return found, pathError("glob", pattern, err)
}

// globIn matches the elements of a pattern below a folder.
func (f *FS) globIn(dir string, elements []string) (matches []string, err error) {
	for _, e := range elements {
		if _, err := path.Match(e, ""); err != nil {
			return nil, err
		}
	}
	// Elements before the first with a meta character are a path.
	i := slices.IndexFunc(elements, func(e string) bool { return strings.ContainsAny(e, `*?[\`) })
	if i < 0 {
		i = len(elements)
	}
	dir = path.Join(dir, path.Join(elements[:i]...))
	if i < len(elements) {
		matches, err = f.globBelow(dir, elements[i:])
	} else if _, err = f.Lstat(dir); err == nil {
		matches = []string{dir}
	}
	if isMissing(unwrapped(err)) {
		return nil, nil
	}
	slices.Sort(matches)
	return matches, err
}

// globBelow matches patterns below a folder.
func (f *FS) globBelow(dir string, elements []string) (matches []string, err error) {
	start := make(states, len(elements)+1)
	start.set(elements, 0)
	reached := map[string]states{dir: start} // of the folders above the current file
	err = f.walk(access{fs: f}, "glob", dir, f.limits.Entries, func(v item) error {
		if v.err != nil {
			return nil
		}
		if v.isTop() {
			if !v.info.IsDir() {
				return fs.SkipAll
			}
			return nil
		}
		s := reached[v.path[:max(strings.LastIndexByte(v.path, '/'), 1)]].next(elements, v.name)
		if s[len(elements)] {
			matches = append(matches, v.path)
		}
		if !v.info.IsDir() {
			return nil
		}
		if !slices.Contains(s[:len(elements)], true) {
			return fs.SkipDir
		}
		reached[v.path] = s
		return nil
	})
	return matches, err
}

// states is the state of matching a path: s[i] is whether the path can match the first i
// elements of the pattern.
type states []bool

// set sets a state, and the states after it where "**" can match nothing.
func (s states) set(elements []string, i int) {
	s[i] = true
	if i < len(elements) && elements[i] == "**" {
		s.set(elements, i+1)
	}
}

// next returns the states after one more name.
func (s states) next(elements []string, name string) states {
	after := make(states, len(s))
	for i, e := range elements {
		if !s[i] {
			continue
		}
		if e == "**" {
			after.set(elements, i)
		} else if ok, err := path.Match(e, name); ok && err == nil { // globIn has checked each pattern
			after.set(elements, i+1)
		}
	}
	return after
}
