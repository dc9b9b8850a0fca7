package snippet

import (
	"strconv"
	"strings"

	text "github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/js"
)

type tokenKind uint8

const (
	atEnd        tokenKind = iota
	notAToken              // invalid in JavaScript modules: @, a lone quote, an open comment, a comment of HTML
	word                   // an identifier, #name or a keyword; the grammar decides which
	number                 // with the suffix n
	quoted                 // a string
	template               // a template up to its end or the next ${
	templateRest           // a template from the } of its ${ on
	regex                  // with its flags
	punctuator             // the longest operator or bracket
)

// A token is a part of the code, code[start:end].
type token struct {
	kind       tokenKind
	start, end int
	newline    bool // a line ends between the previous token and this one
}

// A lexer splits code into tokens. It returns a slash as a punctuator: only the grammar knows where regular
// expressions start. There, the caller calls regex.
type lexer struct {
	code   string
	input  *text.Input
	tokens *js.Lexer
}

func newLexer(code string) lexer {
	if strings.HasPrefix(code, "#!") { // a comment, at the start of a file
		code = "//" + code[2:]
	}
	input := text.NewInputString(code)
	return lexer{code, input, js.NewLexer(input)}
}

func (l *lexer) next() token {
	var t token
	for {
		t.start = min(l.input.Offset(), len(l.code)) // errors at the end exceed it
		if t.start == len(l.code) {
			t.end = t.start
			return t
		}
		kind, part := l.tokens.Next()
		for kind == js.ErrorToken && string(part) == "0" { // the first digit of 010 is an error, the others are a number
			kind, part = l.tokens.Next()
		}
		switch kind {
		case js.WhitespaceToken:
			continue
		case js.CommentToken:
			if part[0] == '/' {
				continue
			}
		case js.LineTerminatorToken, js.CommentLineTerminatorToken:
			t.newline = true
			continue
		}
		t.kind, t.end = l.kindOf(kind), min(l.input.Offset(), len(l.code))
		return t
	}
}

func (l *lexer) kindOf(t js.TokenType) tokenKind {
	switch t {
	case js.PrivateIdentifierToken:
		return word
	case js.StringToken:
		return quoted
	case js.TemplateToken, js.TemplateStartToken:
		return template
	case js.TemplateMiddleToken, js.TemplateEndToken:
		return templateRest
	}
	switch {
	case js.IsIdentifierName(t):
		return word
	case js.IsNumeric(t):
		return number
	case js.IsPunctuator(t), js.IsOperator(t):
		return punctuator
	}
	return notAToken
}

// ahead returns the token after the next n ones.
func (l *lexer) ahead(n int) (t token) {
	input, tokens := *l.input, *l.tokens
	for range n {
		t = l.next()
	}
	*l.input, *l.tokens = input, tokens
	return t
}

// regex reads the last token, a slash, as the start of a regular expression.
func (l *lexer) regex(t token) token {
	t.kind = regex
	if kind, _ := l.tokens.RegExp(); kind != js.RegExpToken {
		t.kind = notAToken
	}
	t.end = l.input.Offset()
	return t
}

func isLineEnd(r rune) bool { return r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' }

func hasLineEnd(s string) bool { return strings.IndexFunc(s, isLineEnd) >= 0 }

// goEscapes are Go's forms of what only JavaScript has in strings and templates.
var goEscapes = strings.NewReplacer(`\\`, `\\`, `\'`, `'`, `\"`, `\"`, "\\`", "`", `\$`, `$`, `\0`, `\x00`, "\\\n", "", "\n", `\n`, `"`, `\"`)

// unescape returns the value of the text of a string, template or identifier, or the text itself, if it has
// escape sequences that esbuild does not print.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	if value, err := strconv.Unquote(`"` + goEscapes.Replace(text) + `"`); err == nil {
		return value
	}
	return text
}
