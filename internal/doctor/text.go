package doctor

import (
	"fmt"
	"strings"
)

// colours are the terminal's escape sequences for each status.
var colours = map[Status]string{OK: "\x1b[32m", Degraded: "\x1b[33m", Missing: "\x1b[31m"}

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
		fmt.Fprintf(&text, "%s  %-*s  %s\n", status(c.Status, colour), width, c.Name, c.Detail)
		if c.Cure != "" {
			fmt.Fprintf(&text, "%-*s  cure: %s\n", statusWidth+2+width, "", c.Cure)
		}
	}
	fmt.Fprintf(&text, "\n%s\n", r.summary())
	return text.String()
}

const statusWidth = len(Degraded)

// status pads before it adds colours: escape sequences have no width.
func status(s Status, colour bool) string {
	padded := fmt.Sprintf("%-*s", statusWidth, s)
	if !colour {
		return padded
	}
	return colours[s] + padded + colourEnd
}

func (r *Report) summary() string {
	var missing, degraded int
	for _, c := range r.Checks {
		switch c.Status {
		case Missing:
			missing++
		case Degraded:
			degraded++
		case OK:
		}
	}
	switch {
	case missing > 0:
		return fmt.Sprintf("gaol can't run here: %d missing, %d degraded", missing, degraded)
	case degraded > 0:
		return fmt.Sprintf("gaol can run here, with less than it could: %d degraded", degraded)
	}
	return "gaol can run here"
}
