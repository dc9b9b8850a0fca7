package jail

import (
	"errors"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
)

// groups is how a process gets into cgroups by itself: being moved by another
// process would take it some 10 ms.
type groups struct {
	born *os.File   // the folder of the v2 group that it is born in; may be nil
	join []*os.File // the tasks files of v1 groups that it writes to
}

func (g *groups) close() {
	for _, f := range g.join {
		f.Close()
	}
	if g.born != nil {
		g.born.Close()
	}
}

// open opens a group's folder.
func (g *groups) open(dir string) error {
	f, err := openFD(filepath.Join(dir, "tasks"), unix.O_WRONLY)
	if err == nil {
		g.join = append(g.join, f)
		return nil
	}
	if !errors.Is(err, unix.ENOENT) {
		return err
	}
	// Only v2 has no such file.
	g.born, err = openFD(dir, unix.O_DIRECTORY|unix.O_RDONLY)
	return err
}

func openGroups(dirs []string) (*groups, error) {
	g := &groups{}
	for _, dir := range dirs {
		if err := g.open(dir); err != nil {
			g.close()
			return nil, err
		}
	}
	return g, nil
}

// makeGroups makes the jail's groups. It returns those that the runs have groups of
// their own below, open. The others every process of the jail joins: that of v1's
// devices holds rules.
func (j *Jail) makeGroups() (*groups, error) {
	var devices []cgroup.Device
	for _, d := range deviceTable {
		devices = append(devices, cgroup.Device{Major: int64(d.major), Minor: int64(d.minor)})
	}
	devices = append(devices, cgroup.Device{Major: 5, Minor: 2}, cgroup.Device{Major: 136, Minor: cgroup.AnyMinor}) // what devpts makes
	group, err := cgroup.NewNamespaceRoot(j.groupPath(""), devices)
	if err != nil {
		return nil, stepError("make", "cgroup", err)
	}
	j.pool = cgroup.NewPool(group)
	if j.shared, err = openGroups(group.OtherDirs()); err != nil {
		return nil, stepError("open", "cgroup", err)
	}
	top, err := openGroups(group.Dirs())
	return top, stepError("open", "cgroup", err)
}

// openInit makes the group that pid 1 is in where groups that hold processes can't
// have children with limits (cgroup v2). Elsewhere there is none.
func (j *Jail) openInit(top *groups) (*os.File, error) {
	if top.born == nil {
		return nil, nil
	}
	// Not made by New, which would want controllers in it: the jail's own group
	// can't pass any on before the entry program has left it.
	group, err := cgroup.Open(j.groupPath("init"))
	if err != nil {
		return nil, err
	}
	dir := group.Dirs()[0]
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	return openFD(dir, unix.O_DIRECTORY|unix.O_RDONLY)
}

// openGroups opens those of a run. What it shares with others stays open.
func (p *Process) openGroups() (own *groups, all groups, err error) {
	own, err = openGroups(p.group.Dirs())
	if err != nil {
		return nil, groups{}, err
	}
	shared := p.jail.shared
	all.join = append(append(all.join, own.join...), shared.join...)
	if all.born = own.born; all.born == nil {
		all.born = shared.born
	}
	return own, all, nil
}

func (j *Jail) groupPath(name string) string {
	return path.Join(j.spec.CgroupParent, j.slot.name(), name)
}

// openFD is os.OpenFile for what the poller is not to watch.
func openFD(path string, flag int) (*os.File, error) {
	fd, err := unix.Open(path, flag|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}
