package jail

import (
	"golang.org/x/sys/unix"

	"gaol/jail/enter"
)

// The steps below are what the entry program does. They come in this order because:
//
//   - cgroups are joined before the cgroup namespace is made, which begins where its
//     maker is, and before the memory of a process grows;
//   - a file system of the jail's namespaces can be mounted only where the host's
//     shows, so before the root changes, and what covers it comes from the stage;
//   - the host's descriptors are closed before a guest's working directory, which may
//     lead through /proc/self/fd, is looked up (CVE-2024-21626);
//   - the working directory is looked up with the guest's rights, not the host's;
//   - a ruleset comes after the working directory, which is looked up without it, and
//     the filter last: it refuses most of these steps.

// makingSteps make a jail around its first process.
func (j *Jail) makingSteps(p *pass, top *groups, init int) []enter.Step {
	const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	steps := append([]enter.Step{enter.Keyring(), enter.OOMScore()}, p.join(top.join)...)
	steps = append(steps, p.join(j.shared.join)...)
	steps = append(steps,
		// Not by the clone: the kernel would have it begin where that puts pid 1. It
		// is the host's user namespace's, which takes nothing away.
		enter.CgroupNamespace(),
		// Some of the kernel's counts by user (inotify's, above all) are held
		// against the limits of the user who made the user namespace, too: were that
		// the host's root, one jail could take all that there is from the other jails
		// and from root.
		enter.EffectiveUser(j.slot.firstHostID()),
		enter.Clone(init, namespaces),
		enter.AwaitHost(), // until the user namespace has ids
		enter.User(0, 0),
		enter.Hostname(j.spec.Hostname),
	)
	if j.spec.Loopback {
		steps = append(steps, enter.Loopback())
	}
	// The copies of the host's mounts are locked, so that this can't become the root;
	// a mount of the same tree over it can.
	steps = append(steps, enter.Mount(stageRoot, stageRoot, "", unix.MS_BIND|unix.MS_REC, ""))
	steps = append(append(steps, j.spec.procSteps()...), enter.Root(stageRoot))
	steps = append(steps, p.commonSteps(rlimits(&Command{OpenFiles: 64}))...)
	return append(append(steps, enter.Capabilities(), enter.Chdir("/"), enter.DieWithHost(), enter.Signals(), enter.NoNewPrivs(), enter.Filter()),
		enter.Execute(j.spec.Reaper, []string{"PATH=/usr/bin"}))
}

// enteringSteps take a process into the jail.
func (j *Jail) enteringSteps(p *pass, c *Command, in *groups) []enter.Step {
	const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	pidfd := p.fd(j.pidfd)
	steps := []enter.Step{
		enter.Keyring(),
		enter.OOMScore(),
		enter.Namespaces(pidfd, unix.CLONE_NEWPID), // for children alone
		enter.Clone(p.groupFD(in.born), 0),
	}
	// The run's group is the root of its cgroup namespace: a program finds the limits of
	// its group in the root of /sys/fs/cgroup, where limitFiles are.
	steps = append(append(steps, p.join(in.join)...), enter.CgroupNamespace(), enter.Namespaces(pidfd, namespaces))
	steps = append(steps, p.commonSteps(rlimits(c))...)
	if c.Terminal {
		steps = append(steps, enter.Terminal(0))
	}
	steps = append(steps, enter.User(GuestUID, GuestGID), enter.Capabilities(), enter.Chdir(c.Dir), enter.Signals(), enter.NoNewPrivs())
	steps = append(steps, p.restrict(c.RulesetFlags)...)
	filter := enter.Filter()
	if j.filter(c).Notify {
		filter = enter.FilterWithListener()
	}
	return append(steps, filter, enter.Execute(append([]string{c.Path}, c.Args...), c.Env))
}

// commonSteps need the rights that are dropped after them.
func (p *pass) commonSteps(limits []enter.Limit) []enter.Step {
	steps := []enter.Step{enter.Session(), p.closeOthers(), enter.Umask(0o022)}
	for _, l := range limits {
		steps = append(steps, l.Step())
	}
	return append(steps, enter.BoundingSet())
}

// rlimits of every process of a jail. The number of processes is bounded by the
// cgroup, which counts a run and not a user.
func rlimits(c *Command) []enter.Limit {
	set := func(resource int, value int64) enter.Limit {
		return enter.Limit{Resource: uint32(resource), Most: uint64(value)}
	}
	limits := []enter.Limit{
		// No core file fits into a byte, and by core(5) only this value also
		// keeps the host's handler, if it has one, from being started as root.
		set(unix.RLIMIT_CORE, 1),
		set(unix.RLIMIT_NOFILE, c.OpenFiles),
		set(unix.RLIMIT_MEMLOCK, 64<<10),
		set(unix.RLIMIT_MSGQUEUE, 0),
		set(unix.RLIMIT_SIGPENDING, 1024),
		set(unix.RLIMIT_NPROC, maxProcesses),
	}
	if c.FileSize > 0 {
		limits = append(limits, set(unix.RLIMIT_FSIZE, c.FileSize))
	}
	return limits
}

// maxProcesses bounds all runs of a jail together: a second guard behind the
// cgroups' limits.
const maxProcesses = 8192
