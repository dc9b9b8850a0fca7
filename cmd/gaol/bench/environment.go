package bench

import (
	"fmt"
	"os"
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
	Sides   []Side `json:"sides"` // the jailed ones, in the order of the table
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
	return Environment{
		Kernel: unix.ByteSliceToString(name.Release[:]), Arch: goruntime.GOARCH, CPUs: goruntime.NumCPU(),
		Node: image.Node, Image: image.ID, Heap: hostHeap, Samples: o.Samples, Sides: o.Jailed,
	}, nil
}

// hostHeap is the heap that a small server has in use. This process would use 2 MB, and
// Go collects garbage whenever the heap has doubled: with each snippet then, and a hundred
// times a second while functions are called.
const hostHeap = 16 << 20

// memoryFolder returns the folder where bare node works: in memory, as a jail's files
// are, so that the disk is not measured. If there is none, it returns the system's temporary
// folder.
func memoryFolder() string {
	const shm = "/dev/shm"
	var fs unix.Statfs_t
	if unix.Statfs(shm, &fs) == nil && fs.Type == unix.TMPFS_MAGIC && unix.Access(shm, unix.W_OK) == nil {
		return shm
	}
	return os.TempDir()
}
