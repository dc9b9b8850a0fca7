package jail

import (
	"errors"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/kernfile"
	"gaol/jail/mounts"
	"gaol/jail/step"
)

// cgroupFiles are open files with which a process moves itself into cgroups: being moved by
// another process takes some 10 ms.
type cgroupFiles struct {
	startIn *os.File   // the folder of the v2 cgroup that it is started in; may be nil
	join    []*os.File // the tasks files of v1 cgroups that it writes to
}

func (c *cgroupFiles) close() {
	for _, f := range c.join {
		f.Close()
	}
	c.startIn.Close() // may be nil
}

// with returns the files of both. They remain those of c and other to close.
func (c *cgroupFiles) with(other *cgroupFiles) *cgroupFiles {
	both := &cgroupFiles{startIn: c.startIn, join: append(c.join[:len(c.join):len(c.join)], other.join...)}
	if both.startIn == nil {
		both.startIn = other.startIn
	}
	return both
}

// joinSteps join the v1 cgroups.
func (c *cgroupFiles) joinSteps() (steps []enter.Step) {
	for _, f := range c.join {
		steps = append(steps, enter.JoinCgroup(f))
	}
	return steps
}

// add opens the folder of a cgroup.
func (c *cgroupFiles) add(dir string) error {
	f, err := kernfile.Open(filepath.Join(dir, "tasks"), unix.O_WRONLY)
	if err == nil {
		c.join = append(c.join, f)
		return nil
	}
	if !errors.Is(err, unix.ENOENT) {
		return err
	}
	c.startIn, err = kernfile.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY) // v2 has no such file
	return err
}

func openCgroups(dirs []string) (*cgroupFiles, error) {
	c := &cgroupFiles{}
	for _, dir := range dirs {
		if err := c.add(dir); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// makeCgroups makes the jail's cgroups. It returns the open files of those below which the
// runs have their own. The other cgroups, such as that of v1's devices, which holds rules,
// are shared by all processes of the jail.
func (j *Jail) makeCgroups() (*cgroupFiles, error) {
	var devices []cgroup.Device
	for _, d := range mounts.Devices {
		devices = append(devices, cgroup.Device{Major: int64(d.Major), Minor: int64(d.Minor)})
	}
	devices = append(devices, cgroup.Device{Major: 5, Minor: 2}, cgroup.Device{Major: 136, Minor: cgroup.AnyMinor}) // of devpts
	group, err := cgroup.NewNamespaceRoot(j.cgroupPath(""), devices)
	if err != nil {
		return nil, step.Wrap("make", "cgroup", err)
	}
	j.pool = cgroup.NewPool(group)
	if j.shared, err = openCgroups(group.OtherDirs()); err != nil {
		return nil, step.Wrap("open", "cgroup", err)
	}
	top, err := openCgroups(group.Dirs())
	return top, step.Wrap("open", "cgroup", err)
}

// makeInitCgroup makes a cgroup for pid 1 in cgroup v2, where a cgroup that holds processes
// can't have children with limits. In v1 it returns nil.
func (j *Jail) makeInitCgroup(top *cgroupFiles) (*os.File, error) {
	if top.startIn == nil {
		return nil, nil
	}
	// Not made by New, which enables controllers for it: the jail's own cgroup can't do that
	// before the entry program has left it.
	group, err := cgroup.Open(j.cgroupPath("init"))
	if err != nil {
		return nil, err
	}
	dir := group.Dirs()[0]
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	return kernfile.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY)
}

func (j *Jail) cgroupPath(name string) string {
	return path.Join(j.spec.CgroupParent, j.slot.name(), name)
}
