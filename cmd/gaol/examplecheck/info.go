package examplecheck

import (
	"slices"
	"strings"
)

// languages maps the languages of examples to the extensions of their files.
var languages = map[string]string{
	"ts": ".ts", "typescript": ".ts", "mts": ".ts", "tsx": ".tsx",
	"js": ".js", "javascript": ".js", "mjs": ".js", "jsx": ".jsx",
}

// fenceInfo is the parsed info string of a fence, such as
//
//	ts run example=counter file=src/main.ts error="too large"
type fenceInfo struct {
	ending string // of the language; "" if it is not JavaScript or TypeScript
	words  []attribute
}

// attribute is a word of an info string. Attributes of other tools are ignored.
type attribute struct {
	name, value string
}

// find returns the attribute of a name.
func (i fenceInfo) find(name string) (attribute, bool) {
	at := slices.IndexFunc(i.words, func(a attribute) bool { return a.name == name })
	if at < 0 {
		return attribute{}, false
	}
	return i.words[at], true
}

// parseInfo parses an info string: a language, and words, of which some have values. Values
// with blanks have quotes.
func parseInfo(text string) fenceInfo {
	text = strings.TrimSpace(text)
	end := strings.IndexFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == '{' })
	if end < 0 {
		end = len(text)
	}
	info := fenceInfo{ending: languages[strings.ToLower(text[:end])]}
	for rest := strings.TrimLeft(text[end:], " \t"); rest != ""; rest = strings.TrimLeft(rest, " \t") {
		var a attribute
		a, rest = nextAttribute(rest)
		info.words = append(info.words, a)
	}
	return info
}

// nextAttribute parses the first word of text, which is not empty and begins with no blank.
// Marks of highlighted lines such as {1, 3} are one word.
func nextAttribute(text string) (a attribute, rest string) {
	if text[0] == '{' {
		mark, rest, _ := strings.Cut(text, "}")
		return attribute{name: mark + "}"}, rest
	}
	end := strings.IndexAny(text, " \t=")
	if end < 0 || text[end] != '=' {
		if end < 0 {
			end = len(text)
		}
		return attribute{name: text[:end]}, text[end:]
	}
	a = attribute{name: text[:end]}
	a.value, rest = attributeValue(text[end+1:])
	return a, rest
}

// attributeValue parses what follows an equals sign. In quotes, a backslash precedes a quote or
// a backslash that is part of the value.
func attributeValue(text string) (value, rest string) {
	if text == "" || text[0] != '"' && text[0] != '\'' {
		end := strings.IndexAny(text, " \t")
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:]
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == text[0]:
			return b.String(), text[i+1:]
		case text[i] == '\\' && i+1 < len(text):
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String(), ""
}
