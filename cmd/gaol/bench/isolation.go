package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gaol/runtime"
)

// Isolations returns the isolations with a name of their own.
func Isolations() []Side { return []Side{"native", "runc", "crun"} }

// isolationBars are the bars of the figures that are measured for isolations. Others have none:
// they are about what isolations have in common.
var isolationBars = map[string]*Bar{
	"run-p50":          {Limit: 2.2, For: "runc"},
	"run-p99":          nil,
	"throughput-4":     nil,
	"create-run-close": {Limit: 4, For: "runc"},
}

// IsolationIDs returns the ids of the figures that are measured for isolations, in their order.
func IsolationIDs() []string {
	return slices.DeleteFunc(IDs(), func(id string) bool { _, ok := isolationBars[id]; return !ok })
}

// LeftOut is an isolation that does not work on this machine.
type LeftOut struct {
	Isolation Side   `json:"isolation"`
	Reason    string `json:"reason"`
}

// chooseIsolations measures the isolations of the options that work, instead of launchers.
func (m *measurer) chooseIsolations(ctx context.Context) error {
	m.options.Jailed = nil
	var first error
	for _, side := range m.options.Isolations {
		err := m.tryIsolation(ctx, side)
		switch {
		case err == nil:
			m.options.Jailed = append(m.options.Jailed, side)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !m.options.LeaveOut:
			return fmt.Errorf("isolation %s: %w", side, err)
		default:
			m.report.LeftOut = append(m.report.LeftOut, LeftOut{side, strings.TrimPrefix(err.Error(), "gaol: ")})
			first = cmp.Or(first, err)
		}
	}
	if len(m.options.Jailed) == 0 {
		return first
	}
	return nil
}

// tryIsolation makes a run, which all figures need.
func (m *measurer) tryIsolation(ctx context.Context, side Side) error {
	rt, err := runtime.Create(ctx, m.create(side))
	if err != nil {
		return err
	}
	return errors.Join(run(ctx, rt, hello), rt.Close())
}

const isolationNotes = `
A ratio is to bare node. OVER: the bar is not met.
`

// isolationTable returns the rows of a report about isolations.
func (r *Report) isolationTable() string {
	rows := [][]string{{"isolation", "figure", "unit", "value", "ratio", "bar", ""}}
	for _, side := range r.sides() {
		for _, f := range r.Figures {
			row := []string{string(side), f.Name, f.Unit, f.Values.cell(side), f.Ratio.cell(side), "", ""}
			if f.Bar != nil && f.For == side {
				cells := f.barCells()
				row[5], row[6] = cells[0], cells[2]
			}
			rows = append(rows, row)
		}
	}
	return alignColumns(rows, 2) + isolationNotes + r.Environment.line()
}
