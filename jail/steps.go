package jail

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"gaol/jail/enter"
	"gaol/jail/kernel"
	"gaol/jail/mounts"
	"gaol/jail/procfs"
)

// The steps of the entry program. Their order has these reasons:
//
//   - files that the host has opened without O_CLOEXEC are closed first;
//   - cgroups are joined before the cgroup namespace is made, because the cgroup of the
//     process that makes it becomes its root, and before the process uses much memory;
//   - a file system of the jail's namespaces can only be mounted where the host's is
//     visible, so before the root changes. The files that cover it are made by package mounts;
//   - the host's descriptors are closed before the guest's working directory is looked up,
//     which may lead through /proc/self/fd (CVE-2024-21626);
//   - the working directory is looked up with the guest's rights, not the host's;
//   - the ruleset comes after the working directory, to which it does not apply, and the
//     filter last, because it denies most of these steps.

// createSteps create the namespaces of a jail, and its pid 1.
func (j *Jail) createSteps(in *cgroupFiles, init *os.File) []enter.Step {
	const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	steps := slices.Concat([]enter.Step{enter.CloseOthers(), enter.Keyring(), enter.OOMScore()}, in.joinSteps(), []enter.Step{
		// Not made by the clone: it would begin in pid 1's cgroup. It belongs to the host's
		// user namespace, which does no harm.
		enter.CgroupNamespace(),
		// The kernel counts some objects (above all inotify's) also against the limits of
		// the user who made the user namespace. If that were the host's root, one jail could
		// exhaust the limits of root and of all other jails.
		enter.EffectiveUser(j.identity.ID()),
		enter.Clone(init, namespaces),
		enter.AwaitHost(), // until the user namespace has ids, and the tree is mounted
		enter.User(0, 0),
		enter.MountNamespace(), // a copy of the stage's, in which the working directory is the stage
		enter.Hostname(j.spec.Hostname),
	})
	if j.spec.Loopback {
		steps = append(steps, enter.Loopback())
	}
	// The copies of the host's mounts are locked, so they can't become the root. A mount of
	// the same tree over them can.
	steps = append(steps, enter.Mount(mounts.Root, mounts.Root, "", unix.MS_BIND|unix.MS_REC, ""))
	return slices.Concat(steps, j.spec.procSteps(), []enter.Step{enter.Root(mounts.Root)},
		commonSteps(&Command{OpenFiles: 64, AllowDegraded: j.spec.AllowDegraded}), []enter.Step{
			enter.Capabilities(), enter.Chdir("/"), enter.DieWithHost(), enter.Signals(), enter.NoNewPrivs(), enter.Filter(),
			enter.Execute(j.spec.Reaper, []string{"PATH=/usr/bin"}),
		})
}

// procSteps mount the jail's /proc, and hide the entries that package procfs does not list.
func (s *Spec) procSteps() []enter.Step {
	const (
		proc  = mounts.Root + "/proc"
		made  = mounts.Proc
		flags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	)
	options := ""
	if s.HideProcesses {
		// Hides the processes that the reader may not trace. With a Landlock ruleset, which
		// makes a domain of each run, those are the processes of other runs.
		options = "hidepid=2"
	}
	steps := []enter.Step{enter.Mount("proc", proc, "proc", flags, options)}
	for _, r := range procfs.Sysctls {
		if r.Source == procfs.Kernel { // the kernel's entry, mounted in the files that replace sys
			steps = append(steps, enter.Mount(proc+"/sys/"+r.Name, made+"/sys/"+r.Name, "", unix.MS_BIND, ""))
		}
	}
	var shown []string
	for _, r := range procfs.RootEntries {
		if r.Source == procfs.Generated {
			steps = append(steps, enter.Mount(made+"/"+r.Name, proc+"/"+r.Name, "", unix.MS_BIND|unix.MS_REC, ""))
		}
		shown = append(shown, r.Name)
	}
	return append(steps, enter.HideEntries(proc, shown, made+"/"+procfs.EmptyFile, made+"/"+procfs.EmptyFolder))
}

// enterSteps make a process of the jail.
func (j *Jail) enterSteps(c *Command, in *cgroupFiles) []enter.Step {
	const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	steps := slices.Concat([]enter.Step{
		enter.CloseOthers(),
		enter.Keyring(),
		enter.OOMScore(),
		enter.Namespaces(j.pidfd, unix.CLONE_NEWPID), // for children only
		enter.Clone(in.startIn, 0),
	}, in.joinSteps(), []enter.Step{
		// The run's cgroup is the root of its cgroup namespace: programs look for its
		// limits in the root of /sys/fs/cgroup, where fullTree has files with them.
		enter.CgroupNamespace(),
		enter.Namespaces(j.pidfd, namespaces),
	}, commonSteps(c))
	if c.Terminal {
		steps = append(steps, enter.Terminal())
	}
	steps = append(steps, enter.User(mounts.GuestUID, mounts.GuestGID), enter.Capabilities())
	return append(steps, c.lastSteps()...)
}

// lastSteps enter the working directory, restrict the process by the command's own rules, and execute
// its program.
func (c *Command) lastSteps() (steps []enter.Step) {
	steps = append(steps, enter.Chdir(c.Dir))
	if c.FromRoot {
		steps = append(steps, enter.Chdir("/"))
	}
	steps = append(steps, enter.Signals(), enter.NoNewPrivs())
	if c.Ruleset != nil {
		steps = append(steps, enter.Ruleset(c.Ruleset, c.RulesetFlags), enter.CloseOthers())
	}
	filter := enter.Filter()
	if c.Filter.Notify {
		filter = enter.FilterWithListener()
	}
	return append(steps, filter, enter.Execute(c.Args, c.Env))
}

// commonSteps need rights that are dropped after them.
func commonSteps(c *Command) []enter.Step {
	return slices.Concat([]enter.Step{enter.Session()}, limitSteps(c), []enter.Step{enter.BoundingSet()})
}

// limitSteps close the host's files, and set the limits.
func limitSteps(c *Command) []enter.Step {
	steps := []enter.Step{enter.CloseOthers(), enter.Umask(0o022)}
	for _, l := range rlimits(c) {
		steps = append(steps, l.Step())
	}
	return steps
}

// maxCore limits the length of core files. No core file fits into a byte. By core(5), this is also
// the only value with which the host's core handler, which runs as root, is not started.
const maxCore = 1

// maxProcesses limits all runs of a jail together, in addition to the limits of cgroups.
const maxProcesses = 8192

// rlimits returns the limits of a process. The number of processes is limited by the
// cgroup, because RLIMIT_NPROC counts per user and not per run.
func rlimits(c *Command) []enter.Limit {
	set := func(resource int, value int64) enter.Limit {
		return enter.Limit{Resource: uint32(resource), Most: uint64(value)}
	}
	limits := []enter.Limit{
		set(unix.RLIMIT_CORE, maxCore),
		set(unix.RLIMIT_NOFILE, c.OpenFiles),
		set(unix.RLIMIT_MEMLOCK, 64<<10),
		set(unix.RLIMIT_NPROC, maxProcesses),
	}
	if !c.AllowDegraded || !kernel.Probe().Lacks(kernel.SignalLimits) {
		limits = append(limits, set(unix.RLIMIT_MSGQUEUE, 0), set(unix.RLIMIT_SIGPENDING, 1024))
	}
	if c.FileSize > 0 {
		limits = append(limits, set(unix.RLIMIT_FSIZE, c.FileSize))
	}
	return limits
}
