package policy

import (
	"errors"
	"path"
	"strings"
	"unicode/utf8"
)

// maxPattern is Linux's PATH_MAX.
const maxPattern = 4096

// checkText rejects text that cannot be a pattern of any scope. It rejects U+FFFD because
// decoders substitute it for invalid UTF-8.
func checkText(s string) error {
	if s == "" || len(s) > maxPattern || !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\uFFFD") {
		return errors.New("not a pattern: empty, too long, or not plain text")
	}
	return nil
}

func checkPath(s string) error {
	if !path.IsAbs(s) || path.Clean(s) != s {
		return errors.New("not an absolute, clean path")
	}
	for e := range strings.SplitSeq(s[1:], "/") {
		if strings.Contains(e, "**") && e != "**" {
			return errors.New("** stands for whole elements only")
		}
	}
	return nil
}

func checkEnv(s string) error {
	if strings.Contains(s, "=") {
		return errors.New("not the name of a variable")
	}
	return nil
}

func matchPathOp(pattern string, _ Operation, name string) bool { return matchPath(pattern, name) }

// matchPath matches a path. * and ? match within one element, ** matches any elements.
func matchPath(pattern, name string) bool {
	if dir, tree := strings.CutSuffix(pattern, "/**"); literal(dir) {
		return !tree && name == pattern || tree && (dir == "" || within(dir, name))
	}
	return matchAll(split(pattern), split(name), "**", matchWildcard)
}

// matchWildcard matches one path element or a variable's name: * matches any characters and
// ? one.
func matchWildcard(pattern, s string) bool {
	if literal(pattern) {
		return pattern == s
	}
	return matchAll([]rune(pattern), []rune(s), '*', func(p, r rune) bool { return p == '?' || p == r })
}

// matchAll matches all elements of s, of which any may match a star of the pattern. It
// backtracks to the latest star only: the first place where the elements between two of
// them match is as good as any later one. So the time is at most the product of the lengths.
func matchAll[E comparable](pattern, s []E, star E, match func(p, e E) bool) bool {
	p, i := 0, 0
	latest, end := -1, 0 // the latest star, and the end of the elements it consumed
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == star:
			latest, end = p, i
			p++
		case p < len(pattern) && match(pattern[p], s[i]):
			p++
			i++
		case latest >= 0:
			end++
			p, i = latest+1, end
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == star {
		p++
	}
	return p == len(pattern)
}

// literal reports whether a pattern is without wildcards. Nearly all rules are P/** or a path,
// and lowering matches each with each.
func literal(s string) bool {
	return strings.IndexByte(s, '*') < 0 && strings.IndexByte(s, '?') < 0
}

// split returns a path's elements, none for "/".
func split(name string) []string {
	if name == "/" {
		return nil
	}
	return strings.Split(name[1:], "/")
}

// placeOf returns the place that a pattern names, if it is P/** or literal.
// Otherwise it returns the longest literal folder that contains all matches, and false.
func placeOf(pattern string) (Place, bool) {
	elems := split(pattern)
	for i, e := range elems {
		if !literal(e) {
			return Place{Path: "/" + strings.Join(elems[:i], "/"), Tree: true}, e == "**" && i == len(elems)-1
		}
	}
	return Place{Path: pattern}, true
}

// String returns the pattern that names the place.
func (p Place) String() string {
	switch {
	case !p.Tree:
		return p.Path
	case p.Path == "/":
		return "/**"
	default:
		return p.Path + "/**"
	}
}

// within reports whether name is the folder dir or lies below it.
func within(dir, name string) bool {
	return dir == "/" || name == dir || strings.HasPrefix(name, dir+"/")
}

// contains reports whether all of q lies in p.
func (p Place) contains(q Place) bool {
	if p.Tree {
		return within(p.Path, q.Path)
	}
	return p == q
}
