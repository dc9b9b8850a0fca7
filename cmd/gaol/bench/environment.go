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
	Heap    int    `json:"heap"` // bytes of this process's heap that are in use throughout
	Samples int    `json:"samples"`
	Quick   bool   `json:"quick"`

	// Isolations are those that were measured, in the order of the table. Nil: launchers.
	Isolations []Side `json:"isolations,omitempty"`
}

// line returns the conditions as a line of text.
func (e Environment) line() string {
	return fmt.Sprintf("Node %s, kernel %s, %s, processors: %d, heap of the host: %d MiB, samples: %d\n",
		e.Node, e.Kernel, e.Arch, e.CPUs, e.Heap>>20, e.Samples)
}

func environment(o Options, image *rootfs.Image) (Environment, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Environment{}, err
	}
	e := Environment{
		Kernel: unix.ByteSliceToString(name.Release[:]), Arch: goruntime.GOARCH, CPUs: goruntime.NumCPU(),
		Node: image.Node, Image: image.ID, Heap: hostHeap, Samples: o.Samples, Quick: o.Quick,
	}
	if o.Isolations != nil {
		e.Isolations = o.Jailed
	}
	return e, nil
}

// hostHeap is the heap that a small server has in use. This process would use 2 MB, and
// Go collects garbage whenever the heap has doubled: with each snippet then, and a hundred
// times a second while functions are called.
const hostHeap = 16 << 20

// memoryFolder returns the folder where bare node works: in memory, as a jail's files
// are, so that the disk is not measured. If there is none, it returns "", which means
// the system's temporary folder.
func memoryFolder() string {
	const shm = "/dev/shm"
	var fs unix.Statfs_t
	if unix.Statfs(shm, &fs) == nil && fs.Type == unix.TMPFS_MAGIC && unix.Access(shm, unix.W_OK) == nil {
		return shm
	}
	return ""
}
