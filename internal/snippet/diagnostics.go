package snippet

import "strings"

// countDiagnostics adds the cost of messages that name a token and another place: that a
// name is already declared, is a constant or is exported twice, or that something is not
// allowed in a module, with the export that makes the code one. For each message esbuild
// reads all bytes between the two places, forwards and backwards, to find their lines. So
// every repeated word counts, as if the two places were at the ends of the code.
func (s *scanner) countDiagnostics(t token, text string, is traits) {
	s.lastCounted = s.lastCounted && text == ":"
	if s.mentions != nil && text != ":" {
		s.mentions.next(text)
	}
	switch t.kind {
	case word:
		switch {
		case s.lastText == "." || s.lastText == "?." || is&undiagnosed != 0:
		case text == "case":
			s.cost.addDiagnostic(t.start - s.top().at)
		case s.mentions != nil:
			s.mentions.add(text, s.lastText, t.start, len(s.code))
		case s.seen[text]:
			s.cost.addDiagnostic(len(s.code))
			s.lastCounted = true
		default:
			s.seen[text] = true
		}
	case number:
		if len(text) > 1 && text[0] == '0' && isDigit(text[1]) {
			s.cost.addDiagnostic(len(s.code))
		}
	case quoted:
		if n := strings.IndexByte(text, '\\'); n >= 0 && strings.ContainsAny(text[n:], "01234567") {
			s.cost.addDiagnostic(len(s.code) * strings.Count(text, "\\"))
		}
	case punctuator:
		if text == ":" && s.top().kind == '{' && (s.previousText == "{" || s.previousText == ",") {
			s.uncountKey(t)
		}
		if s.mentions != nil {
			s.mentions.last = nil // a type follows, such as (a) => b
		}
	}
}

// uncountKey subtracts the cost of the last token: it is an object's key or a label, which
// can be a duplicate only within the same object.
func (s *scanner) uncountKey(t token) {
	if s.mentions != nil {
		s.mentions.drop()
	}
	if s.lastCounted {
		s.cost.addDiagnostic(-len(s.code))
	}
	s.cost.addDiagnostic(t.start - s.top().at)
}

// countFlags adds the cost of messages about duplicate flags of a regular expression.
func (s *scanner) countFlags(text string) {
	flags := text[strings.LastIndexByte(text, '/')+1:]
	for i := range len(flags) {
		if strings.IndexByte(flags[:i], flags[i]) >= 0 {
			s.cost.addDiagnostic(len(s.code))
			return
		}
	}
}
