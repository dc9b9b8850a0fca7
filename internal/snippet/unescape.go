package snippet

import (
	"strconv"
	"strings"
)

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
