package snippet

import "strings"

// exported is the part of CommonJS's exports that an expression sets.
type exported uint8

const (
	exportsNothing  exported = iota
	exportsProperty          // exports.a = 1, module.exports.a = 1
	exportsFunction          // module.exports = () => 1
)

// exports returns the part of exports that an expression sets, which is nothing if the code
// declares module or exports itself.
func (p parsed) exports(value span) exported {
	if p.bound&(setOfName("module")|setOfName("exports")) != 0 {
		return exportsNothing
	}
	target, right := assigned(p.text[:value.end], value.start)
	own := strings.TrimPrefix(target, "module.")
	switch {
	case strings.HasPrefix(own, "exports.") || strings.HasPrefix(own, "exports["):
		return exportsProperty
	case target != "module.exports":
		return exportsNothing
	}
	r := newParser(p.text[:value.end], right)
	if r.assignment(false) && !r.failed && r.tok.kind == atEnd {
		return exportsFunction
	}
	return exportsNothing
}

// assigned returns the left side of an assignment, without white space, and the offset
// after the =. The left side is empty if there is no assignment or it contains other
// expressions.
func assigned(code string, start int) (target string, right int) {
	var b strings.Builder
	l := lexer{code: code, pos: start}
	for {
		t := l.next()
		text := code[t.start:t.end]
		switch {
		case text == "=":
			return b.String(), t.end
		case t.kind == word, t.kind == quoted, t.kind == number, text == ".", text == "[", text == "]":
			b.WriteString(text)
		default:
			return "", 0
		}
	}
}
