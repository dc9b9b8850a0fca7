package snippet

import "strings"

const (
	// maxStars bounds the ways through export * from one file to another.
	maxStars = 512

	// maxAmbiguous bounds the meanings of a name that several files export, which esbuild
	// follows one by one.
	maxAmbiguous = 1e5

	// maxLinkTokens bounds the tokens of all clauses, as each word in a string or comment
	// that looks like a keyword starts one.
	maxLinkTokens = 1e6
)

// links estimates what it takes esbuild to find the export of each import. It follows names
// that are imported and exported again, even within one file, and compares each step with
// all steps before. Words in strings and comments count, too, because only the grammar
// knows where these start.
type links struct {
	names   int               // in the clauses of imports and exports
	members int               // that may be those of a namespace
	ways    int               // through export *
	stars   int               // export *
	shared  int               // exported names of clauses that several files have
	from    map[string]string // the file of each exported name, or "" for several
	tokens  int
}

// cost returns the estimated time in nanoseconds.
func (l *links) cost() int {
	chain := min(l.names, 10_000)
	return 2*chain*chain*chain + (l.members+1000)*chain*chain
}

// add adds the clauses of a file. If the reason is not "", the files are rejected for what
// the file has at the offset.
func (l *links) add(code, file string) (at int, reason string) {
	stars, namespaces := 0, 0
	for at, keyword := range keywordsIn(code, "import", "export") {
		c := clause{lexer: lexer{code, at + len(keyword)}, exports: keyword == "export", limit: maxLinkTokens - l.tokens}
		if !c.exports && c.isComputed() && !inComment(code, at) {
			return at, computedImport
		}
		c.read()
		if l.tokens += c.tokens + 1; l.tokens > maxLinkTokens {
			return at, tooComplex
		}
		l.names += len(c.names)
		l.share(c.exported(), file)
		switch {
		case c.star:
			stars++
		case c.namespace:
			namespaces++
		}
	}
	if namespaces > 0 {
		l.members += strings.Count(code, ".")
	}
	l.stars += stars
	l.ways = max(1, l.ways) * (1 + stars)
	if l.ways > maxStars || l.stars > 1 && power(l.ways, l.shared) > maxAmbiguous {
		return 0, tooComplex
	}
	return 0, ""
}

// share counts the names that several files export.
func (l *links) share(names []string, file string) {
	if l.from == nil {
		l.from = make(map[string]string)
	}
	for _, name := range names {
		other, seen := l.from[name]
		switch {
		case !seen:
			l.from[name] = file
		case other != file && other != "":
			l.shared++
			l.from[name] = ""
		}
	}
}

// power returns base to the power of n, or a little more than maxAmbiguous.
func power(base, n int) int {
	p := 1
	for range n {
		if p *= base; p > maxAmbiguous {
			break
		}
	}
	return p
}

// keywordsIn iterates over the places where code has one of two words of the same length.
func keywordsIn(code string, words ...string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		for at := 0; at < len(code); at++ {
			n := strings.IndexAny(code[at:], firstBytes(words))
			if n < 0 {
				return
			}
			at += n
			for _, w := range words {
				if strings.HasPrefix(code[at:], w) && !continuesName(code, at, at+len(w)) && !yield(at, w) {
					return
				}
			}
		}
	}
}

func firstBytes(words []string) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteByte(w[0])
	}
	return b.String()
}

// continuesName reports whether code[start:end] is a part of a longer name in ASCII.
func continuesName(code string, start, end int) bool {
	ascii := func(i int) bool { return i >= 0 && i < len(code) && code[i] < 0x80 && isWordByte(code[i]) }
	return ascii(start-1) || ascii(end)
}

// A clause is what follows import or export: up to the } of its names, if it has any.
type clause struct {
	lexer
	exports bool
	limit   int // of tokens

	tokens    int
	names     []string // the last word or string of each
	star      bool     // export *, not as a name
	namespace bool     // import *
}

func (c *clause) next() (t token, text string) {
	c.tokens++
	t = c.lexer.next()
	return t, c.code[t.start:t.end]
}

// read reads the clause.
func (c *clause) read() {
	const maxBefore = 8 // tokens: type, a default name, a comma, * as name
	for range maxBefore {
		t, text := c.next()
		switch {
		case text == "{":
			c.readNames()
			return
		case text == "*" && c.exports:
			_, text := c.peek()
			c.star = text != "as"
			return
		case text == "*":
			c.namespace = true
		case t.kind != word && text != ",":
			return
		}
	}
}

func (c *clause) peek() (token, string) {
	before := c.lexer
	defer func() { c.lexer = before }()
	return c.next()
}

// readNames reads the names up to }. Other code than names ends a clause that is none.
func (c *clause) readNames() {
	last := ""
	for c.tokens < c.limit {
		t, text := c.next()
		switch {
		case t.kind == word || t.kind == quoted:
			last = text
		case text == "," || text == "}":
			if last != "" {
				c.names = append(c.names, last)
			}
			last = ""
		}
		if text == "}" || t.kind != word && t.kind != quoted && text != "," {
			return
		}
	}
}

// exported returns the names of an export clause that export * passes on.
func (c *clause) exported() []string {
	if !c.exports {
		return nil
	}
	return c.names
}

// isComputed reports whether import is a call whose first argument is not just a string.
func (c *clause) isComputed() bool {
	before := c.lexer
	defer func() { c.lexer = before }()
	_, text := c.next()
	if text == "." {
		if _, text = c.next(); text == "meta" {
			return false
		}
		_, text = c.next()
	}
	if text != "(" {
		return false
	}
	t, text := c.next()
	_, after := c.next()
	isString := t.kind == quoted || t.isPlainTemplate(text)
	return !isString || after != ")" && after != ","
}

// isPlainTemplate reports whether a token is a template without ${}.
func (t token) isPlainTemplate(text string) bool {
	return t.kind == template && len(text) > 1 && text[len(text)-1] == '`'
}

// inComment reports whether the place is certainly in a comment: its line starts with //,
// and has nothing before the place that could end a comment, a template or a JSX text.
func inComment(code string, at int) bool {
	line := strings.TrimLeft(code[strings.LastIndexByte(code[:at], '\n')+1:at], " \t")
	return strings.HasPrefix(line, "//") && !strings.ContainsAny(line, "*`<{}'\"\\\r\u2028\u2029")
}
