package doctor

import (
	"fmt"
	"strings"
)

// colours are the terminal's escape sequences for each status.
var colours = map[Status]string{OK: "\x1b[32m", Optional: "\x1b[36m", Degraded: "\x1b[33m", Missing: "\x1b[31m"}

const colourEnd = "\x1b[0m"

// Text formats the report for people: a line for each check, its cure below it, and a
// summary. If colour is set, it includes a terminal's colours.
func (r *Report) Text(colour bool) string {
	width := 0
	for _, c := range r.Checks {
		width = max(width, len(c.Name))
	}
	var text strings.Builder
	for _, c := range r.Checks {
		status := fmt.Sprintf("%-*s", len(Degraded), c.Status) // padded first: escape sequences have no width
		if colour {
			status = colours[c.Status] + status + colourEnd
		}
		fmt.Fprintf(&text, "%s  %-*s  %s\n", status, width, c.Name, c.Detail)
		if c.Cure != "" {
			fmt.Fprintf(&text, "%-*s  cure: %s\n", len(Degraded)+2+width, "", c.Cure)
		}
	}
	fmt.Fprintf(&text, "\n%s\n", r.summary())
	return text.String()
}

func (r *Report) summary() string {
	count := map[Status]int{}
	for _, c := range r.Checks {
		count[c.Status]++
	}
	switch {
	case count[Missing] > 0:
		return fmt.Sprintf("gaol can't run here: %d missing, %d degraded", count[Missing], count[Degraded])
	case count[Degraded] > 0:
		return fmt.Sprintf("gaol can run here, with less than it could: %d degraded", count[Degraded])
	}
	return "gaol can run here"
}
