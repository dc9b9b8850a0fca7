package snippet

import "strings"

// complain counts what esbuild may have to say about a token together with another place:
// that a name is declared already, is a constant, is exported twice; or that something
// can't be in a module, which it is because of an export. To tell the lines it goes over
// all bytes between the two places, to and fro, each time. So each word that was there
// before counts, as if the two were at the ends of the code.
func (s *scanner) complain(t token, text string, is traits) {
	s.counted = s.counted && text == ":"
	switch t.kind {
	case word, private:
		switch {
		case s.lastIs == "." || s.lastIs == "?." || is&silent != 0:
		case text == "case":
			s.effort.message(t.start - s.top().at)
		case s.seen[text]:
			s.effort.message(len(s.code))
			s.counted = true
		default:
			s.seen[text] = true
		}
	case number:
		if len(text) > 1 && text[0] == '0' && isDigit(text[1]) {
			s.effort.message(len(s.code))
		}
	case quoted:
		if n := strings.IndexByte(text, '\\'); n >= 0 && strings.ContainsAny(text[n:], "01234567") {
			s.effort.message(len(s.code) * strings.Count(text, "\\"))
		}
	case punctuator:
		if text == ":" && s.top().kind == '{' && (s.beforeLast == "{" || s.beforeLast == ",") {
			s.key(t)
		}
	}
}

// key takes back what was counted for the last token: it is an object's key, or a label.
// That may be there twice in the same object only.
func (s *scanner) key(t token) {
	if s.counted {
		s.effort.message(-len(s.code))
	}
	s.effort.message(t.start - s.top().at)
}

// flags counts the flags of a regular expression that are there twice.
func (s *scanner) flags(text string) {
	flags := text[strings.LastIndexByte(text, '/')+1:]
	for i := range len(flags) {
		if strings.IndexByte(flags[:i], flags[i]) >= 0 {
			s.effort.message(len(s.code))
			return
		}
	}
}
