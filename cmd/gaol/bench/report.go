package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Report has the results. As JSON it is what gaol bench --json prints.
type Report struct {
	Environment Environment `json:"environment"`
	LeftOut     []LeftOut   `json:"leftOut,omitempty"`
	Figures     []Figure    `json:"figures"`
}

// sides returns the sides that have a value in the report, bare node first.
func (r *Report) sides() []Side {
	return slices.DeleteFunc(append([]Side{Bare, Exec, Zygote}, r.Environment.Isolations...), func(side Side) bool {
		return !slices.ContainsFunc(r.Figures, func(f Figure) bool { _, ok := f.Values[side]; return ok })
	})
}

const tableNotes = `
A ratio is to bare node, or to what the figure's name says. A bar is for the zygote's
ratio, or for its value if the bar has a unit; both: for exec's as well. OVER: the bar
is not met.%s
`

// Table returns the report for people.
func (r *Report) Table() string {
	if r.Environment.Isolations != nil {
		return r.isolationTable()
	}
	sides := r.sides()
	// row returns a row with a value of each side and a ratio of each jailed side.
	row := func(name, unit string, value, ratio func(Side) string, bar ...string) []string {
		cells := []string{name, unit}
		for _, side := range sides {
			cells = append(cells, value(side))
		}
		for _, side := range sides {
			if side != Bare {
				cells = append(cells, ratio(side))
			}
		}
		return append(cells, bar...)
	}
	side := func(s Side) string { return string(s) }
	rows := [][]string{row("figure", "unit", side, func(s Side) string { return side(s) + " ratio" }, "bar", "goal", "")}
	for _, f := range r.Figures {
		rows = append(rows, row(f.Name, f.Unit, f.Values.cell, f.Ratio.cell, f.barCells()...))
	}
	quick := ""
	if r.Environment.Quick {
		quick = fmt.Sprintf("\nQuick: programs did 1/%d of the work that a figure's name says.", quickPart)
	}
	return alignColumns(rows, 1) + fmt.Sprintf(tableNotes, quick) + r.Environment.line()
}

// barCells returns the bar, with the unit if it limits the value, and with "both" if it is
// for both launchers; the goal; and whether the bar is met, as a word.
func (f Figure) barCells() []string {
	if f.Bar == nil {
		return []string{"", "", ""}
	}
	bar, result := "<= "+short(f.Limit), ""
	if f.AtLeast {
		bar = ">= " + short(f.Limit)
	}
	if f.OfValue {
		bar += " " + f.Unit
	}
	if f.Both {
		bar += " both"
	}
	if f.Met != nil {
		result = "OVER"
		if *f.Met {
			result = "ok"
		}
	}
	return []string{bar, short(f.Goal), result}
}

func (v Values) cell(side Side) string {
	value, ok := v[side]
	if !ok {
		return ""
	}
	return short(value)
}

// short formats a number with three significant digits.
func short(f float64) string {
	decimals := 2
	switch {
	case f >= 100:
		decimals = 0
	case f >= 10:
		decimals = 1
	}
	return strconv.FormatFloat(f, 'f', decimals, 64)
}

// alignColumns aligns the first columns on the left and the others, numbers, on the right.
func alignColumns(rows [][]string, first int) string {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			if i < first {
				line += fmt.Sprintf("%-*s  ", width[i], cell)
			} else {
				line += fmt.Sprintf("%*s  ", width[i], cell)
			}
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return text.String()
}
