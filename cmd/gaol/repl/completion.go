package repl

import (
	"cmp"
	"fmt"
	"slices"
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
		e.show(columns(names, e.width()))
	}
	return line, pos, true
}

func (e *lineEditor) width() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return cmp.Or(e.cols, 80)
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

// columns arranges names in as many columns as fit into width.
func columns(names []string, width int) string {
	more := len(names) - maxShown
	if more > 0 {
		names = names[:maxShown]
	}
	column := 0
	for _, name := range names {
		column = max(column, utf8.RuneCountInString(name)+2)
	}
	var lines []string
	for line := range slices.Chunk(names, max(1, width/column)) {
		text := ""
		for _, name := range line {
			text += fmt.Sprintf("%-*s", column, name)
		}
		lines = append(lines, strings.TrimRight(text, " "))
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("... and %d more", more))
	}
	return strings.Join(lines, "\n")
}
