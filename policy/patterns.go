package policy

import (
	"errors"
	"path"
	"strings"
	"unicode/utf8"
)

// maxPattern is PATH_MAX of Linux.
const maxPattern = 4096

var (
	errText     = errors.New("not a pattern: empty, too long, or not plain text")
	errPath     = errors.New("not an absolute, clean path")
	errStars    = errors.New("** stands for whole elements only")
	errVariable = errors.New("not the name of a variable")
)

// checkText refuses what no pattern of any scope can be. U+FFFD is refused since
// it is what is left of text that was not UTF-8.
func checkText(s string) error {
	if s == "" || len(s) > maxPattern || !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\uFFFD") {
		return errText
	}
	return nil
}

func checkPath(s string) error {
	if !path.IsAbs(s) || path.Clean(s) != s {
		return errPath
	}
	for e := range strings.SplitSeq(s[1:], "/") {
		if strings.Contains(e, "**") && e != "**" {
			return errStars
		}
	}
	return nil
}

func checkEnv(s string) error {
	if strings.Contains(s, "=") {
		return errVariable
	}
	return nil
}

func matchPathOp(pattern string, _ Operation, name string) bool { return matchPath(pattern, name) }

// matchPath goes back to the latest ** only, never to one before it: the first
// place where the elements between two of them fit is as good as any other. So
// the time is at most the product of the lengths.
func matchPath(pattern, name string) bool {
	if dir, tree := strings.CutSuffix(pattern, "/**"); literal(dir) {
		return !tree && name == pattern || tree && (dir == "" || within(dir, name))
	}
	pat, elems := split(pattern), split(name)
	p, e := 0, 0
	star, from := -1, 0 // the latest **, and what it has eaten up to
	for e < len(elems) {
		switch {
		case p < len(pat) && pat[p] == "**":
			star, from = p, e
			p++
		case p < len(pat) && matchWildcard(pat[p], elems[e]):
			p++
			e++
		case star >= 0:
			from++
			p, e = star+1, from
		default:
			return false
		}
	}
	for p < len(pat) && pat[p] == "**" {
		p++
	}
	return p == len(pat)
}

// plain reports whether no character of a pattern stands for others. Nearly all
// rules are P/** or a path, and lowering matches each with each.
func literal(s string) bool {
	return strings.IndexByte(s, '*') < 0 && strings.IndexByte(s, '?') < 0
}

// split returns a path's elements: none for "/".
func split(name string) []string {
	if name == "/" {
		return nil
	}
	return strings.Split(name[1:], "/")
}

// matchWildcard matches one element, or a variable's name: * is any characters, ? is
// one. Like matchPath it goes back to the latest * only.
func matchWildcard(pattern, s string) bool {
	p, i := 0, 0
	star, from := -1, 0
	for i < len(s) {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && pattern[p] == '?':
			p++
			i += size
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0:
			_, size = utf8.DecodeRuneInString(s[from:])
			from += size
			p, i = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// placeOf returns the place a pattern stands for if it is P/** or has no
// wildcard, else the longest literal folder it lies in, and false.
func placeOf(pattern string) (Place, bool) {
	elems := split(pattern)
	for i, e := range elems {
		if !literal(e) {
			p := Place{Path: "/" + strings.Join(elems[:i], "/"), Tree: true}
			return p, e == "**" && i == len(elems)-1
		}
	}
	return Place{Path: pattern}, true
}

// String returns the pattern that stands for the place.
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

// holds reports whether all of q lies in p.
func (p Place) contains(q Place) bool {
	if p.Tree {
		return within(p.Path, q.Path)
	}
	return p == q
}
