package bench

import (
	"fmt"
	"strconv"

	"gaol/cmd/gaol/report"
)

// Report is the result of all measurements. gaol bench --json prints it as JSON.
type Report struct {
	Environment Environment `json:"environment"`
	Figures     []Figure    `json:"figures"`
}

// Table returns the report for people: a row for each side and figure.
func (r *Report) Table() string {
	lines := []string{"side\tfigure\tunit\tvalue\tratio"}
	for _, side := range append([]Side{Bare}, r.Environment.Sides...) {
		for _, f := range r.Figures {
			value, measured := f.Values[side]
			if !measured {
				continue
			}
			ratio := ""
			if got, ok := f.Ratio[side]; ok {
				ratio = Short(got)
			}
			lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%6s\t%5s", side, f.Name, f.Unit, Short(value), ratio))
		}
	}
	return report.Table(lines) + "\nRatios compare with bare node, or with the other side that the figure's name has.\n" + r.Environment.line()
}

// Short formats a number with three significant digits.
func Short(f float64) string {
	decimals := 2
	switch {
	case f >= 100:
		decimals = 0
	case f >= 10:
		decimals = 1
	}
	return strconv.FormatFloat(f, 'f', decimals, 64)
}
