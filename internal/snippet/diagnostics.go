package snippet

import "strings"

// complain counts what esbuild may have to say about a token together with another place:
// that a name is declared already, is a constant, is exported twice; or that something
// can't be in a module, which it is because of an export. To tell the lines it goes over
// all bytes between the two places, to and fro, each time. So each word that was there
// before counts, as if the two were at the ends of the code.
func (s *scanner) countDiagnostics(t token, text string, is traits) {
	s.lastCounted = s.lastCounted && text == ":"
	switch t.kind {
	case word, private:
		switch {
		case s.lastText == "." || s.lastText == "?." || is&undiagnosed != 0:
		case text == "case":
			s.cost.addDiagnostic(t.start - s.top().at)
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
	}
}

// key takes back what was counted for the last token: it is an object's key, or a label.
// That may be there twice in the same object only.
func (s *scanner) uncountKey(t token) {
	if s.lastCounted {
		s.cost.addDiagnostic(-len(s.code))
	}
	s.cost.addDiagnostic(t.start - s.top().at)
}

// flags counts the flags of a regular expression that are there twice.
func (s *scanner) countFlags(text string) {
	flags := text[strings.LastIndexByte(text, '/')+1:]
	for i := range len(flags) {
		if strings.IndexByte(flags[:i], flags[i]) >= 0 {
			s.cost.addDiagnostic(len(s.code))
			return
		}
	}
}
