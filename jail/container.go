package jail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/kernfile"
	"gaol/jail/mounts"
	"gaol/jail/procfs"
	"gaol/jail/step"
)

// errNoZygote is the error of commands that a jail with Spec.OCI cannot start.
var errNoZygote = errors.New("a container cannot have zygotes")

// container lets an OCI runtime make the namespaces, the root directory, the user and the filter of
// pid 1, and start processes in them.
//
//	startPid1 ── bundle: config.json ── "runc run --detach" ── pid 1
//	launch ── process.json ── "runc exec --detach" ── the entry program (package enter)
//
// The bundle and the runtime's state of each container are in a separate folder. Killing the
// processes and removing the cgroups and this folder removes the container, without "runc delete". If
// the host process dies, the next host process that creates a jail removes them.
type container struct {
	*Jail
	started atomic.Int64 // number of the last file in the container's folder
}

// extend implements starter. The runtime executes the entry program in the tree.
func (j *container) extend(t *Tree) {
	addProgram(t, enter.Path)
	t.Layer = append(t.Layer, j.spec.limitFiles()...)
}

// startPid1 implements starter.
func (j *container) startPid1(top *cgroupFiles) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	namespaces, err := j.newNamespaces(top)
	defer func() {
		for _, f := range namespaces {
			f.Close()
		}
	}()
	if err != nil {
		return err
	}
	pid1, err := j.create(ctx, namespaces)
	if err != nil {
		return err
	}
	j.pid1 = pid1
	if err := j.openPid1(); err != nil {
		return err
	}
	if !j.spec.OCI.SystemdCgroup {
		if err := j.moveToInitCgroup(top); err != nil {
			return step.Wrap("move", "pid 1", err)
		}
	}
	if err := j.prepareNetwork(); err != nil {
		return err
	}
	return step.Wrap("mount", procfs.BootID, mounts.ReplaceBootID(pid1.PID()))
}

// containerCgroup returns the container's cgroup as the runtime's driver names it: the jail's, or a new
// scope.
func (j *Jail) containerCgroup() string {
	if j.spec.OCI.SystemdCgroup {
		return scopeSlice + ":" + scopePrefix + ":" + j.identity.newScope()
	}
	return j.identity.cgroup
}

var errOpened = errors.New("the namespaces are open")

// newNamespaces makes the container's namespaces that the runtime would make in another way than
// createSteps. The runtime would make the user namespace as the host's root: createSteps explains why
// the jail's host user must make it. In a network namespace the runtime would bring up the loopback
// interface. The cgroup namespace begins in the jail's cgroups, wherever the runtime's driver makes
// the container's. After an error the caller must close the files, too.
func (j *Jail) newNamespaces(top *cgroupFiles) (files map[specs.LinuxNamespaceType]*os.File, err error) {
	var flags uint64 = unix.CLONE_NEWUSER
	names := map[specs.LinuxNamespaceType]string{specs.UserNamespace: "user", specs.CgroupNamespace: "cgroup"}
	if !j.spec.Loopback {
		flags |= unix.CLONE_NEWNET
		names[specs.NetworkNamespace] = "net"
	}
	in := top.with(j.shared)
	list := enter.List{StartIn: in.startIn}
	list.Steps = slices.Concat([]enter.Step{enter.CloseOthers()}, in.joinSteps(), []enter.Step{
		enter.CgroupNamespace(), enter.EffectiveUser(j.identity.ID()), enter.Clone(nil, flags), enter.AwaitHost(),
	})
	files = map[specs.LinuxNamespaceType]*os.File{}
	err = enter.Launch(j.program, list, func(child *enter.Child) error {
		defer func() {
			_ = child.Kill() // it was needed for the namespaces only
			_, _ = child.Wait()
		}()
		failed := j.mapIDs(child.PID())
		for kind, name := range names {
			f, err := kernfile.Open(fmt.Sprintf("/proc/%d/ns/%s", child.PID(), name), unix.O_RDONLY)
			if failed = cmp.Or(failed, err); err == nil {
				files[kind] = f
			}
		}
		return cmp.Or(failed, errOpened)
	})
	if errors.Is(err, errOpened) {
		err = nil
	}
	return files, err
}

// moveToInitCgroup moves pid 1 out of the cgroup in which the runtime has started it: see
// makeInitCgroup.
func (j *Jail) moveToInitCgroup(top *cgroupFiles) error {
	init, err := makeInitCgroup(top)
	if err != nil || init == nil {
		return err
	}
	defer init.Close()
	return kernfile.WriteFile(filepath.Join(init.Name(), "cgroup.procs"), strconv.Itoa(j.pid1.PID()))
}

// launch implements starter.
func (j *container) launch(ctx context.Context, p *Process, c *Command, in *cgroupFiles) error {
	if c.Zygote != nil {
		return step.Wrap("start", c.name(), errNoZygote)
	}
	steps := in.joinSteps()
	if in.startIn != nil {
		procs, err := kernfile.Open(filepath.Join(in.startIn.Name(), "cgroup.procs"), unix.O_WRONLY)
		if err != nil {
			return step.Wrap("open", "cgroup", err)
		}
		defer procs.Close()
		steps = append(steps, enter.JoinCgroup(procs))
	}
	list := enter.List{Steps: containerSteps(c, steps), Filter: c.Filter.Program, Files: c.Files, OnListener: p.onListener(c.Filter)}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // before the process joins its cgroup, killing the cgroup does not end it
		select {
		case <-p.killed:
			stop()
		case <-ctx.Done():
		}
	}()
	var child *enter.Supervised
	unwatch := func() bool { return true }
	err := enter.LaunchIn(list, func(files []*os.File, args []string) (err error) {
		if child, err = j.enter(ctx, files, args); err == nil {
			p.first = child
			unwatch = context.AfterFunc(ctx, func() { _ = child.Kill() })
		}
		return err
	})
	unwatch()
	if err != nil && child != nil {
		_ = child.Kill()
	}
	return err
}

// containerSteps are the steps of the entry program in a container. The runtime replaces the other
// enterSteps, except for join: the process already runs as the guest's user without capabilities.
func containerSteps(c *Command, join []enter.Step) []enter.Step {
	steps := slices.Concat([]enter.Step{enter.CloseOthers()}, join, []enter.Step{enter.CloseOthers(), enter.Umask(0o022)})
	for _, l := range rlimits(c) {
		steps = append(steps, l.Step())
	}
	if c.Terminal {
		steps = append(steps, enter.Terminal())
	}
	return append(steps, c.lastSteps()...)
}

// limitFiles are files in /sys/fs/cgroup in which libuv looks for the limits in cgroup v2: in
// folders of the runs' cgroups, because the root of a container's cgroup namespace is above them.
// Further runs see no limits there.
func (s *Spec) limitFiles() (files []File) {
	if v, err := cgroup.Detect(); err != nil || v != cgroup.V2 {
		return nil
	}
	const top, limits, most = "/sys/fs/cgroup/", "limits", 256
	for path, text := range s.Limits.Files() {
		if name := strings.TrimPrefix(path, top); !strings.Contains(name, "/") {
			files = append(files, File{Path: top + limits + "/" + name, Mode: 0o444, Data: []byte(text)})
		}
	}
	for n := 1; n <= most; n++ {
		files = append(files, File{Path: top + cgroup.PoolName(n), Mode: os.ModeSymlink, Data: []byte(limits)})
	}
	return files
}
