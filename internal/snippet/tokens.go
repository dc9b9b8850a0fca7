package snippet

import "strings"

// A TokenKind is the kind of a [Token].
type TokenKind = tokenKind

// The kinds of tokens.
const (
	AtEnd      = atEnd
	NotAToken  = notAToken
	Word       = word       // an identifier, #name or a keyword
	Number     = number     // with the suffix n
	Quoted     = quoted     // a string
	Template   = template   // a template up to its end or the next ${
	Regex      = regex      // with its flags
	Punctuator = punctuator // the longest operator or bracket
)

// A Token is the part code[Start:End] of JavaScript.
type Token struct {
	Kind       TokenKind
	Start, End int
	Newline    bool // a line ends between the previous token and this one
}

// Tokens splits JavaScript into tokens for a parser. Only the grammar knows where regular
// expressions start, and where the ${} of a template ends: there, the parser calls Regex or
// Template with the offset of the slash or brace that Next returned.
type Tokens struct{ lexer }

// NewTokens returns the tokens of code.
func NewTokens(code string) *Tokens { return &Tokens{lexer{code: code}} }

// Next returns the next token.
func (t *Tokens) Next() Token {
	n := t.next()
	return Token{n.kind, n.start, n.end, n.newline}
}

// Regex reads a regular expression from the slash at start.
func (t *Tokens) Regex(start int) Token {
	kind := t.regex(start)
	return Token{Kind: kind, Start: start, End: t.pos}
}

// Template reads the part of a template from the brace at start that ends its ${}.
func (t *Tokens) Template(start int) Token {
	kind := t.template(start)
	return Token{Kind: kind, Start: start, End: t.pos}
}

// Seek makes Next continue at an offset.
func (t *Tokens) Seek(offset int) { t.pos = offset }

// traits are properties of a word that the scanner uses.
type traits uint16

const (
	continues  traits = 1 << iota // does not start a statement after a line's end or a }
	nests                         // is followed by an operand or a statement
	contextual                    // may also be a name
	caseClause                    // starts a clause of switch
)

// keywords are the keywords of JavaScript and TypeScript, with their traits.
var keywords = traitsOf(map[traits]string{
	continues: "else catch finally while in of instanceof as satisfies is extends implements from",
	nests: "typeof void delete new await yield throw return if else for while do with class extends function keyof " +
		"readonly infer unique async declare abstract in instanceof case default export import enum try finally catch switch",
	contextual: "await yield keyof readonly infer unique async declare abstract of as is satisfies let static get set type " +
		"asserts accessor using from namespace module interface implements public private protected override out global",
	caseClause: "case default",
})

// mayBeKeyword excludes most words without a map access, which takes longer than the rest of
// the work for a word.
func mayBeKeyword(text string) bool {
	return len(text) <= len("implements") && text[0] >= 'a' && text[0] <= 'z'
}

func traitsOf(lists map[traits]string) map[string]traits {
	all := make(map[string]traits)
	for is, list := range lists {
		for text := range strings.FieldsSeq(list) {
			all[text] |= is
		}
	}
	return all
}
