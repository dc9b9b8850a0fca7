package bench

import (
	"fmt"
	goruntime "runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/report"
	"gaol/rootfs"
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
	e := r.Environment
	return report.Table(lines) + "\nRatios compare with bare node, or with the other side that the figure's name has.\n" +
		fmt.Sprintf("Node %s, kernel %s, %s, processors: %d, samples: %d\n", e.Node, e.Kernel, e.Arch, e.CPUs, e.Samples)
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

// Environment describes the machine and the conditions of a measurement.
type Environment struct {
	Kernel  string `json:"kernel"`
	Arch    string `json:"arch"`
	CPUs    int    `json:"cpus"`
	Node    string `json:"node"`
	Image   string `json:"image"`
	Samples int    `json:"samples"`
	Sides   []Side `json:"sides"` // the jailed ones, in the order of the table
}

func environment(o Options, image *rootfs.Image) (Environment, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Environment{}, err
	}
	return Environment{
		Kernel: unix.ByteSliceToString(name.Release[:]), Arch: goruntime.GOARCH, CPUs: goruntime.NumCPU(),
		Node: image.Node, Image: image.ID, Samples: o.Samples, Sides: o.Jailed,
	}, nil
}
