package bench

import (
	goruntime "runtime"

	"golang.org/x/sys/unix"

	"gaol/rootfs"
)

// Environment is where figures come from.
type Environment struct {
	Kernel  string `json:"kernel"`
	Arch    string `json:"arch"`
	CPUs    int    `json:"cpus"`
	Node    string `json:"node"`
	Image   string `json:"image"`
	Heap    int    `json:"heap"` // bytes of this process's own, besides what measuring takes
	Samples int    `json:"samples"`
	Quick   bool   `json:"quick"`
}

func environment(o Options, image *rootfs.Image) (Environment, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Environment{}, err
	}
	return Environment{
		Kernel: unix.ByteSliceToString(name.Release[:]), Arch: goruntime.GOARCH, CPUs: goruntime.NumCPU(),
		Node: image.Node, Image: image.ID, Heap: hostHeap, Samples: o.Samples, Quick: o.Quick,
	}, nil
}

// hostHeap is what a small server has in use. This process would have 2 MB, and Go collects
// its garbage whenever as much again has come: with each snippet then, and a hundred times a
// second while functions are called.
const hostHeap = 16 << 20

// fastFolder is where bare node works: in memory, as a jail's files are, so that
// the disk isn't what is compared. Empty, where that's not to be had: the
// system's temporary folder.
func fastFolder() string {
	const shm = "/dev/shm"
	var fs unix.Statfs_t
	if unix.Statfs(shm, &fs) == nil && fs.Type == unix.TMPFS_MAGIC && unix.Access(shm, unix.W_OK) == nil {
		return shm
	}
	return ""
}
