package bench

import (
	"fmt"
	goruntime "runtime"

	"golang.org/x/sys/unix"

	"gaol/rootfs"
)

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

// line returns the conditions as a line of text.
func (e Environment) line() string {
	return fmt.Sprintf("Node %s, kernel %s, %s, processors: %d, samples: %d\n", e.Node, e.Kernel, e.Arch, e.CPUs, e.Samples)
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
