package examplecheck

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/internal/lazyregexp"
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
	ending string            // of the language; "" if it is not JavaScript or TypeScript
	words  map[string]string // the values of the words; words of other tools are ignored
}

// parseInfo parses an info string: a language, and words, of which some have values. Values
// with blanks have quotes. Of equal words, the first one counts.
func parseInfo(text string) fenceInfo {
	text = strings.TrimSpace(text)
	end := strings.IndexFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == '{' })
	if end < 0 {
		end = len(text)
	}
	info := fenceInfo{languages[strings.ToLower(text[:end])], map[string]string{}}
	for _, m := range slices.Backward(word().FindAllStringSubmatch(text[end:], -1)) {
		if m[0] != "" && m[1] == "" {
			info.words[m[2]] = m[5] + escaped().ReplaceAllString(m[3]+m[4], "$1")
		}
	}
	return info
}

// word matches marks of highlighted lines such as {1, 3}, or a name and its value, in double quotes, in single quotes or
// without. In quotes, a backslash precedes a quote or a backslash that is part of the value.
var (
	word    = lazyregexp.New(`(\{[^}]*)\}?|([^ \t=]*)(?:=(?:"((?:[^"\\]|\\.)*)"?|'((?:[^'\\]|\\.)*)'?|([^ \t]*)))?`)
	escaped = lazyregexp.New(`\\(.)`)
)

// mainFile is the file that a snippet runs.
const mainFile = "src/main.ts"

// openFlags keep a file that is replaced while it is found from blocking, or from being a link.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

// fileKind is the kind of a file's content, by its extension.
type fileKind int

const (
	kindOther fileKind = iota
	kindCode
	kindMarkdown
	kindMDX
)

// codeEndings are the extensions of code files, which are examples.
var codeEndings = []string{".ts", ".tsx", ".js", ".jsx", ".mjs"}

func kind(p string) fileKind {
	switch ext := path.Ext(p); {
	case slices.Contains(codeEndings, ext) && !strings.HasSuffix(p, ".d.ts"):
		return kindCode
	case ext == ".md":
		return kindMarkdown
	case ext == ".mdx":
		return kindMDX
	}
	return kindOther
}
