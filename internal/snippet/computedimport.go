package snippet

import "strings"

// computedImport returns the offset at which code calls import with more than a string, or -1. Words in
// strings and comments may count, too: only the grammar determines where these start.
func computedImport(code string) int {
	const keyword = "import"
	for at := 0; at < len(code); at += len(keyword) {
		n := strings.Index(code[at:], keyword)
		if n < 0 {
			break
		}
		at += n
		l := lexer{code: code, pos: at + len(keyword)}
		if !continuesName(code, at, l.pos) && isComputed(l) && !inComment(code, at) {
			return at
		}
	}
	return -1
}

// continuesName reports whether code[start:end] is a part of a longer name in ASCII.
func continuesName(code string, start, end int) bool {
	ascii := func(i int) bool { return i >= 0 && i < len(code) && code[i] < 0x80 && isWordByte(code[i]) }
	return ascii(start-1) || ascii(end)
}

// isComputed reports whether import, which l follows, is a call whose first argument is not just
// a string.
func isComputed(l lexer) bool {
	next := func() (token, string) {
		t := l.next()
		return t, l.code[t.start:t.end]
	}
	_, text := next()
	if text == "." {
		if _, text = next(); text == "meta" {
			return false
		}
		_, text = next()
	}
	if text != "(" {
		return false
	}
	t, text := next()
	_, after := next()
	isString := t.kind == quoted || t.kind == template && len(text) > 1 && text[len(text)-1] == '`'
	return !isString || after != ")" && after != ","
}

// inComment reports whether the offset is certainly in a comment: its line starts with //,
// and nothing before the offset could end a comment, a template or a JSX text.
func inComment(code string, at int) bool {
	line := strings.TrimLeft(code[strings.LastIndexByte(code[:at], '\n')+1:at], " \t")
	return strings.HasPrefix(line, "//") && !strings.ContainsAny(line, "*`<{}'\"\\\r\u2028\u2029")
}
