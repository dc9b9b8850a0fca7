package hostfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"gaol/vfs"
)

// Glob returns the paths that match a pattern, sorted: an absolute path whose elements
// are patterns of path.Match, or "**", which stands for any number of folders, none among
// them. Only links before the first element with one of *?[\ are followed. No match, and
// folders that can't be read, are no errors; path.ErrBadPattern is one.
func (f *FS) Glob(pattern string) ([]string, error) {
	if _, err := vfs.ParsePath(pattern); err != nil {
		return nil, &fs.PathError{Op: "glob", Path: pattern, Err: errPath}
	}
	found, err := f.globIn("/", strings.Split(pattern[1:], "/"))
	return found, pathError("glob", pattern, err)
}

// globIn matches elements below a folder, whose name is no pattern.
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
	reached := map[string]states{base: begin(elements)} // of the folders that lead to where the walk is
	err = f.walk(reader{fs: f}, "glob", base, f.limits.Entries, func(v found) error {
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

// states tells how many of a pattern's elements a path can have matched.
type states []bool

func begin(elements []string) states {
	s := make(states, len(elements)+1)
	s.set(elements, 0)
	return s
}

// set adds a number, and those that it implies, as "**" may stand for nothing.
func (s states) set(elements []string, i int) {
	s[i] = true
	if i < len(elements) && elements[i] == "**" {
		s.set(elements, i+1)
	}
}

// next gives the states behind one more name.
func (s states) next(elements []string, name string) states {
	after := make(states, len(s))
	for i, e := range elements {
		if !s[i] {
			continue
		}
		if e == "**" {
			after.set(elements, i)
		} else if ok, err := path.Match(e, name); ok && err == nil { // each was tried
			after.set(elements, i+1)
		}
	}
	return after
}
