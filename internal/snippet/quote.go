package snippet

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Quote returns a text as a JavaScript string.
func Quote(text string) string {
	quoted, _ := json.Marshal(text) // encoding a string cannot fail
	return string(quoted)
}

// Shorten shortens a text to a number of bytes, and marks that with an ellipsis.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// PackageOf returns the package's name of a specifier.
func PackageOf(specifier string) string {
	parts := strings.SplitN(specifier, "/", 3)
	if strings.HasPrefix(specifier, "@") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}
