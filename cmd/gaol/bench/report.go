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
	Figures     []Figure    `json:"figures"`

	// Curves are the distributions for the picture.
	Curves []Curve `json:"-"`
}

// sides returns the sides that have a value in the report, bare node first.
func (r *Report) sides() []Side {
	return slices.DeleteFunc([]Side{Bare, Exec, Zygote}, func(side Side) bool {
		return !slices.ContainsFunc(r.Figures, func(f Figure) bool { _, ok := f.Values[side]; return ok })
	})
}

// sortBarsFirst moves the figures with a bar to the top.
func (r *Report) sortBarsFirst() {
	slices.SortStableFunc(r.Figures, func(a, b Figure) int {
		switch {
		case a.Bar != nil && b.Bar == nil:
			return -1
		case a.Bar == nil && b.Bar != nil:
			return 1
		}
		return 0
	})
}

const tableNotes = `
A ratio is to bare node, or to what the figure's name says. A bar is for the zygote's
ratio, or for its value if the bar has a unit; both: for exec's as well. OVER: the bar
is not met.
Node %s, kernel %s, %s, processors: %d, heap of the host: %d MiB, samples: %d
`

// Table returns the report for people.
func (r *Report) Table() string {
	sides := r.sides()
	head := []string{"figure", "unit"}
	for _, side := range sides {
		head = append(head, string(side))
	}
	for _, side := range sides {
		if side != Bare {
			head = append(head, string(side)+" ratio")
		}
	}
	rows := [][]string{append(head, "bar", "goal", "")}
	for _, f := range r.Figures {
		rows = append(rows, f.cells(sides))
	}
	e := r.Environment
	return alignColumns(rows) + fmt.Sprintf(tableNotes, e.Node, e.Kernel, e.Arch, e.CPUs, e.Heap>>20, e.Samples)
}

// cells returns f's row of the table.
func (f Figure) cells(sides []Side) []string {
	row := []string{f.Name, f.Unit}
	for _, side := range sides {
		row = append(row, f.Values.cell(side))
	}
	for _, side := range sides {
		if side != Bare {
			row = append(row, f.Ratio.cell(side))
		}
	}
	if f.Bar == nil {
		return append(row, "", "", "")
	}
	return append(row, f.barText(), short(f.Goal), f.result())
}

// result returns whether the bar is met, as a word.
func (f Figure) result() string {
	switch {
	case f.Met == nil:
		return ""
	case *f.Met:
		return "ok"
	}
	return "OVER"
}

// barText returns the bar, with the unit if it limits the value, and with "both" if it is
// for both launchers.
func (f Figure) barText() string {
	text := "<= " + short(f.Limit)
	if f.AtLeast {
		text = ">= " + short(f.Limit)
	}
	if f.OfValue {
		text += " " + f.Unit
	}
	if f.Both {
		text += " both"
	}
	return text
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
	switch {
	case f >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case f >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

// alignColumns aligns the first column on the left and the others, numbers, on the right.
func alignColumns(rows [][]string) string {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		line := fmt.Sprintf("%-*s", width[0], row[0])
		for i, cell := range row[1:] {
			line += fmt.Sprintf("  %*s", width[i+1], cell)
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return text.String()
}
