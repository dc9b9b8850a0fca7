package bench

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Report is what was measured. As JSON it's what gaol bench --json prints.
type Report struct {
	Environment Environment `json:"environment"`
	Figures     []Figure    `json:"figures"`

	// Curves are the distributions that the picture draws.
	Curves []Curve `json:"-"`
}

// sides are those that have a value in the report, bare node first.
func (r *Report) sides() []Side {
	var sides []Side
	for _, side := range []Side{Bare, Exec, Zygote} {
		for _, f := range r.Figures {
			if _, ok := f.Values[side]; ok {
				sides = append(sides, side)
				break
			}
		}
	}
	return sides
}

// barredFirst moves what has a bar up, where it's seen.
func (r *Report) barredFirst() {
	barred := func(f Figure) bool { return f.Bar != nil }
	other := func(f Figure) bool { return f.Bar == nil }
	all := r.Figures
	r.Figures = slices.Concat(slices.DeleteFunc(slices.Clone(all), other), slices.DeleteFunc(slices.Clone(all), barred))
}

const tableNotes = `
A ratio is to bare node, or to what the figure's name says. A bar is for the zygote's
ratio, or for its value where the bar has a unit; both: for exec's as well. OVER: on the
wrong side of its bar.
Node %s, kernel %s, %s, processors: %d, heap of the host: %d MiB, samples: %d
`

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error {
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
	rows := [][]string{append(head, "bar", "go past it to", "")}
	for _, f := range r.Figures {
		rows = append(rows, f.cells(sides))
	}
	e := r.Environment
	notes := fmt.Sprintf(tableNotes, e.Node, e.Kernel, e.Arch, e.CPUs, e.Heap>>20, e.Samples)
	_, err := io.WriteString(w, layOut(rows)+notes)
	return err
}

// cells are f's row of the table.
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
	return append(row, f.barText(), short(f.Goal), f.verdict())
}

func (f Figure) verdict() string {
	switch {
	case f.Met == nil:
		return ""
	case *f.Met:
		return "ok"
	}
	return "OVER"
}

// barText has the unit where the bar is about the value itself, and says where it is
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

// short writes a number with three digits that count.
func short(f float64) string {
	switch {
	case f >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case f >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

// layOut pads the columns: the first is words, the others are numbers.
func layOut(rows [][]string) string {
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
