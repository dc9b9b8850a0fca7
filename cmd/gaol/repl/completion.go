package repl

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxShown is the most names that Tab lists: more would scroll the typed line out of sight.
const maxShown = 200

// completeLine completes the name before the cursor on Tab.
func (e *lineEditor) completeLine(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	before, after := line[:pos], line[pos:]
	insert := func(text string) (string, int, bool) { return before + text + after, pos + len(text), true }
	if strings.TrimSpace(before) == "" { // Tab indents, as in other editors
		return insert("  ")
	}
	prefix, names := e.complete(e.ctx, before)
	if len(names) == 0 {
		return line, pos, true
	}
	if more := strings.TrimPrefix(commonPrefix(names), prefix); more != "" {
		return insert(more)
	}
	if len(names) > 1 {
		fmt.Fprintln(e.terminal, list(names))
	}
	return line, pos, true
}

// commonPrefix returns what all names begin with. It cuts whole characters, never in one.
func commonPrefix(names []string) string {
	prefix := names[0]
	for _, name := range names[1:] {
		for !strings.HasPrefix(name, prefix) {
			_, last := utf8.DecodeLastRuneInString(prefix)
			prefix = prefix[:len(prefix)-last]
		}
	}
	return prefix
}

// list returns names as a text, which the terminal wraps.
func list(names []string) string {
	if more := len(names) - maxShown; more > 0 {
		names = append(names[:maxShown:maxShown], fmt.Sprintf("... and %d more", more))
	}
	return strings.Join(names, "  ")
}
