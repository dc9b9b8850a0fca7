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
func (f *FS) globIn(dir string, elements []string) ([]string, error) {
	for _, e := range elements {
		if _, err := path.Match(e, ""); err != nil {
			return nil, err
		}
	}
	base, elements := splitPattern(dir, elements)
	if len(elements) == 0 {
		return f.globOne(base)
	}
	matches, err := f.globBelow(base, elements)
	slices.Sort(matches)
	return matches, err
}

func (f *FS) globOne(p string) ([]string, error) {
	_, err := f.Lstat(p)
	switch e := unwrapped(err); {
	case err == nil:
		return []string{p}, nil
	case isMissing(e):
		return nil, nil
	}
	return nil, err
}

func (f *FS) globBelow(base string, elements []string) (matches []string, err error) {
	reached := map[string]states{base: startStates(elements)} // of the folders above the current file
	err = f.walk(access{fs: f}, "glob", base, f.limits.Entries, func(v item) error {
		if v.err != nil {
			return nil
		}
		if v.dir < 0 {
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
	if isMissing(unwrapped(err)) {
		return nil, nil
	}
	return matches, err
}

// splitPattern adds to dir the elements before the first with a meta character.
func splitPattern(dir string, elements []string) (base string, rest []string) {
	i := slices.IndexFunc(elements, func(e string) bool { return strings.ContainsAny(e, `*?[\`) })
	if i < 0 {
		i = len(elements)
	}
	return path.Join(dir, path.Join(elements[:i]...)), elements[i:]
}

// states is the state of matching a path: s[i] says that the path can match the first i
// elements of the pattern.
type states []bool

func startStates(elements []string) states {
	s := make(states, len(elements)+1)
	s.set(elements, 0)
	return s
}

// set sets a state, and those that follow because "**" can match nothing.
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
