package jail

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"

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

// with returns the files of c and other, which continue to own them.
func (c *cgroupFiles) with(other *cgroupFiles) *cgroupFiles {
	return &cgroupFiles{startIn: cmp.Or(c.startIn, other.startIn), join: slices.Concat(c.join, other.join)}
}

// joinSteps join the v1 cgroups.
func (c *cgroupFiles) joinSteps() (steps []enter.Step) {
	for _, f := range c.join {
		steps = append(steps, enter.JoinCgroup(f))
	}
	return steps
}

// openCgroups opens the files of cgroups. The directories may be of both versions: on some
// machines with v1, systemd's own hierarchy is a v2 one.
func openCgroups(dirs []string) (*cgroupFiles, error) {
	c := &cgroupFiles{}
	for _, dir := range dirs {
		f, err := kernfile.Open(filepath.Join(dir, "tasks"), unix.O_WRONLY)
		if err == nil {
			c.join = append(c.join, f)
		} else if errors.Is(err, unix.ENOENT) { // on v2 the file does not exist
			c.startIn, err = kernfile.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY)
		}
		if err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// makeCgroups makes the jail's cgroups. It returns the open files of the cgroups that are
// parents of the runs' cgroups. All processes of the jail share the other cgroups, such as
// the devices cgroup of v1, which holds rules.
func (j *Jail) makeCgroups() (*cgroupFiles, error) {
	var devices []cgroup.Device
	for _, d := range mounts.Devices {
		devices = append(devices, cgroup.Device{Major: int64(d.Major), Minor: int64(d.Minor)})
	}
	devices = append(devices, cgroup.Device{Major: 5, Minor: 2}, cgroup.Device{Major: 136, Minor: cgroup.AnyMinor}) // of devpts
	group, err := cgroup.NewNamespaceRoot(j.identity.cgroup, devices)
	if err != nil {
		return nil, step.Wrap("make", "cgroup", err)
	}
	j.pool = cgroup.NewPool(group)
	if j.spec.Identified {
		if j.pool, err = cgroup.NewIdentifiedPool(group); err != nil {
			return nil, step.Wrap("identify", "cgroups", err)
		}
	}
	if j.shared, err = openCgroups(group.OtherDirs()); err != nil {
		return nil, step.Wrap("open", "cgroup", err)
	}
	top, err := openCgroups(group.Dirs())
	return top, step.Wrap("open", "cgroup", err)
}

// makeInitCgroup makes a cgroup for pid 1 in cgroup v2, where a cgroup that holds processes
// can't have children with limits. In v1 it returns nil.
func makeInitCgroup(top *cgroupFiles) (*os.File, error) {
	if top.startIn == nil {
		return nil, nil
	}
	// Not made by package cgroup, which enables controllers for it: the jail's own cgroup can't do that
	// before the entry program has left it.
	dir := filepath.Join(top.startIn.Name(), "init")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	return kernfile.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY)
}
