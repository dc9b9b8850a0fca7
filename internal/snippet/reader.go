package snippet

// A span is a part of the code, code[start:end].
type span struct{ start, end int }

// A reader reads JavaScript by its grammar, as far as is needed to tell where statements
// and their expressions begin and end, and which names modules bind. It doesn't judge:
// esbuild is the authority on what is valid, and of a valid program the reader is to find
// the right parts. It reads more than is valid, and never a valid program in another way,
// because by one token's lookahead the grammar is unambiguous; what an arrow's parameters
// and patterns share with expressions is read as both.
//
// When it fails, the code is at its end for all that reads on.
type reader struct {
	lexer
	tok  token
	last int // where the token before ended

	context
	effort  effort
	failed  bool
	trouble string // why, if the code is refused

	commas  int         // of the sequence that was read last
	inner   []statement // of the function body that was read last
	returns bool        // there is a return outside of functions
	brace   int         // where the last statement that is a block begins, outside of all others, or -1
	fenced  bool        // ``` begins a line
	waved   bool        // ~~~ does

	declared []string // names outside of functions, and in patterns all words
	pattern  bool     // one is being read

	imports []span // the word of each import(…)
	metas   []span // import.meta
	awaits  bool   // await is an operator outside of functions

	names nameSet // of CommonJS that are variables here
	bound nameSet // of these, those that may be declared here
}

// context is what a function changes for the code in it.
type context struct {
	async, generator bool // await and yield are operators
	function         bool // return ends a function
}

// read reads a whole program.
func read(code string) (*reader, []statement) {
	r := newReader(code, 0)
	list := r.statements()
	if r.tok.kind != atEnd {
		r.fail()
	}
	return r, list
}

// newReader is at the token that begins at an offset, outside of functions.
func newReader(code string, at int) *reader {
	r := &reader{lexer: lexer{code: code, pos: at}, context: context{async: true}, brace: -1}
	r.next()
	return r
}

// readLone reads what is the rest of the program, but for semicolons, and gives its end.
func readLone(code string, at int, read func(*reader)) (end int, ok bool) {
	r := newReader(code, at)
	read(r)
	end = r.last
	for r.take(";") {
	}
	return end, !r.failed && r.tok.kind == atEnd
}

func (r *reader) next() {
	if r.failed {
		return
	}
	r.last = r.tok.end
	r.accept(r.lexer.next())
}

func (r *reader) accept(t token) {
	switch r.tok = t; t.kind {
	case notAToken:
		r.fail()
	case word:
		r.effort.find()
		if r.pattern {
			r.declared = append(r.declared, r.text())
		}
	}
}

// again takes the current token, which begins with a slash or with }, as what scan finds
// there.
func (r *reader) again(scan func(start int) tokenKind) {
	if r.failed {
		return
	}
	t := r.tok
	t.kind = scan(t.start)
	t.end = r.pos
	r.accept(t)
}

// fail ends the reading. The position stays where it is.
func (r *reader) fail() {
	r.failed = true
	r.tok.kind, r.tok.end = atEnd, r.tok.start
}

// deeper begins a level of nesting, which is to be ended by shallower.
func (r *reader) deeper() {
	if r.effort.depth++; r.effort.depth > maxNesting {
		r.trouble = nestedTooDeeply
		r.fail()
	}
}

func (r *reader) shallower() { r.effort.depth-- }

func (r *reader) text() string { return r.code[r.tok.start:r.tok.end] }

// is says whether the current token is a word or punctuator with this text.
func (r *reader) is(text string) bool {
	return r.tok.end-r.tok.start == len(text) && (r.tok.kind == word || r.tok.kind == punctuator) && r.text() == text
}

func (r *reader) isAny(texts ...string) bool {
	for _, t := range texts {
		if r.is(t) {
			return true
		}
	}
	return false
}

// take goes over the current token if it is text.
func (r *reader) take(text string) bool {
	if !r.is(text) {
		return false
	}
	r.next()
	return true
}

func (r *reader) expect(text string) {
	if !r.take(text) {
		r.fail()
	}
}

// ahead is the token after the current one.
func (r *reader) ahead() token {
	if r.failed {
		return r.tok
	}
	l := r.lexer
	return l.next()
}

// isAhead says whether the token after the current one is text.
func (r *reader) isAhead(text string) bool {
	t := r.ahead()
	return r.code[t.start:t.end] == text
}

// semicolon ends a statement, by the rules of its automatic insertion.
func (r *reader) semicolon() {
	if !r.take(";") && !r.is("}") && r.tok.kind != atEnd && !r.tok.newline {
		r.fail()
	}
}
