package mcpserver

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxText is how many characters of output a result has. Clients cut, or move to a file, what
// exceeds 25,000 tokens or 50,000 characters.
const maxText = 40_000

// cut returns the first characters of a text, and whether there are more.
func cut(text string, characters int) (string, bool) {
	n := 0
	for at := range text {
		if n == characters {
			return text[:at], true
		}
		n++
	}
	return text, false
}

// oneLine returns the last line of a text that is not empty, without control characters, in at most
// 200 characters.
func oneLine(text string) string {
	lines := strings.Split(strings.TrimRight(text, " \r\n\t"), "\n")
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, lines[len(lines)-1])
	line, _ = cut(strings.TrimSpace(line), 200)
	return line
}

// paragraphs joins the texts that are not empty.
func paragraphs(texts ...string) string {
	var list []string
	for _, t := range texts {
		if t = strings.TrimRight(t, "\n"); t != "" {
			list = append(list, t)
		}
	}
	return strings.Join(list, "\n")
}

// texts returns content with a text.
func texts(text string) []mcp.Content { return []mcp.Content{&mcp.TextContent{Text: text}} }
