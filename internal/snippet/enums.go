package snippet

import "strings"

const (
	// maxEnumBytes bounds the text of enums that esbuild inserts where they are used.
	maxEnumBytes = 64 << 20

	// maxAdditions is where maxEnumBytes is exceeded at the latest.
	maxAdditions = 30
)

// enums estimates the size of the values of TypeScript's enums. esbuild computes them, and
// inserts them at each use: enum A { a = 'xx', b = a + a, c = b + b … } doubles with each
// member.
type enums struct {
	longest   int // bytes of a string in an enum
	additions int // in enums
	uses      int // members, and places that may refer to one
}

// add adds the enums of a file. Only the parts of the code from the word enum to its
// closing brace count as enums, but words in strings and comments do.
func (e *enums) add(code string) {
	e.uses += strings.Count(code, ".") + strings.Count(code, "[") + strings.Count(code, ",") + 1
	for at := range keywordsIn(code, "enum") {
		l := lexer{code, at + len("enum")}
		if t := l.next(); t.kind != word {
			continue
		}
		if t := l.next(); code[t.start:t.end] != "{" {
			continue
		}
		e.addBody(&l)
		if e.explode() {
			return
		}
	}
}

// addBody adds the members of an enum. Where a slash, a template or another bracket makes
// its end unclear, the rest of the code counts as enum.
func (e *enums) addBody(l *lexer) {
	for {
		start := l.pos
		t := l.next()
		text := l.code[t.start:t.end]
		switch {
		case t.kind == atEnd, text == "}":
			return
		case t.kind == quoted, t.isPlainTemplate(text):
			e.longest = max(e.longest, len(text))
		case text == "+":
			e.additions++
		case t.kind == notAToken, t.kind == template, text == "/", text == "/=", text == "{":
			rest := l.code[start:]
			e.longest = max(e.longest, longestQuoted(rest))
			e.additions += strings.Count(rest, "+") + strings.Count(rest, "${")
			return
		}
	}
}

// longestQuoted returns a bound of the length of the strings in code: the longest distance
// between two quotes.
func longestQuoted(code string) (longest int) {
	for {
		n := strings.IndexAny(code, "\"'`")
		if n < 0 {
			return longest
		}
		longest = max(longest, n)
		code = code[n+1:]
	}
}

// explode reports whether the values may become too large.
func (e *enums) explode() bool {
	if e.longest == 0 || e.additions == 0 && e.longest*e.uses <= maxEnumBytes {
		return false
	}
	return e.additions > maxAdditions || (e.longest<<e.additions) > maxEnumBytes/e.uses
}
