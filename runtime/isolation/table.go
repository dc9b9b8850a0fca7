package isolation

import "strings"

// by is an entry with a mechanism.
func by(mechanism string) Support { return Support{How: mechanism} }

// no is the entry of an isolation without the features.
func no(reason string) Support { return Support{Why: reason} }

// same is the entry of an isolation whose mechanism is that of Native.
var same = Support{Same: true}

// row describes features, which a comma and a space separate.
func row(features string, native, oci Support) Row {
	r := Row{Native: native, OCI: oci}
	for f := range strings.SplitSeq(features, ", ") {
		r.Features = append(r.Features, Feature(f))
	}
	return r
}

// Mechanisms of several rows.
const (
	inContainer = "the same, in the container's root; the entry program loads the ruleset and the filter, over the runtime's filter"
	sameFilter  = "the same, loaded over the runtime's filter"
	onHost      = "this process, outside the sandbox"
	throughTree = "the host opens the tree's root by descriptor, and resolves paths below it with `openat2` as the guest's user"
	ownCgroup   = "the cgroup of the run, v1 or v2"
)

var table = []Group{
	{"Permissions", permissionRows},
	{"Limits", limitRows},
	{"Why runs end", causeRows},
	{"Where denials are seen", denialRows},
	{"Files", fileRows},
	{"Processes", processRows},
	{"Network and host functions", hostRows},
	{"The walls", wallRows},
	{"Machine and settings", machineRows},
}

var permissionRows = []Row{
	row("fs.read, fs.readdir, fs.execute",
		by("mounts over hidden places; a Landlock ruleset; `noexec` mounts"), by(inContainer)),
	row("fs.write, fs.create_dir, fs.rm, fs.symlink, fs.truncate",
		by("read-only mounts; a Landlock ruleset"), by(inContainer)),
	row("fs.rename", by("a Landlock ruleset, between folders; everywhere: the filter"), by(inContainer)),
	row("fs.chmod", by("owners of files; read-only mounts; everywhere: the filter"), by(inContainer)),
	row("fs.stat, fs.readlink", by("mounts over places where every operation is denied"), by(inContainer)),
	row("network.fetch, network.connect, network.listen",
		by("a network namespace with `lo` only; the filter: no TCP or UDP sockets; a Landlock ruleset: ports; BPF and egress: hosts outside"),
		by("the same filter and ruleset; BPF and egress in the network namespace that the runtime makes")),
	row("network.dns",
		by("an empty network namespace; with rules for hosts outside, egress's resolver"),
		by("the same, in the network namespace that the runtime makes")),
	row("childProcess.spawn", by("the filter; for a list of programs a Landlock ruleset and `noexec` mounts"), by(inContainer)),
	row("process.signal", by("the scope of a Landlock ruleset; the filter"), by("the same; the entry program loads the ruleset and the filter, over the runtime's filter")),
	row("process.inspect", by("`/proc` is mounted with `hidepid`; the filter always refuses `ptrace`"),
		by("the runtime mounts `/proc` with `hidepid`; the same filter")),
	row("env.read", by("the variable is not passed"), same),
	row("Options.Permissions, Options.AllowDegraded, NodeRuntime.Missing", by("the operations above; the kernel's version of Landlock decides which"), same),
}

var limitRows = []Row{
	row("Options.Limits, NodeRuntime.Limits", by("the rows below"), same),
	row("Limits.Memory, Limits.CPUs, Limits.Pids", by(ownCgroup+", which it joins before the program starts"),
		by(ownCgroup+", which the entry program joins; the container's cgroup has no limits of its own")),
	row("Limits.CPUTime", by("the host reads "+ownCgroup+", and kills the run"), same),
	row("Limits.Files", by("`RLIMIT_NOFILE`"), same),
	row("Limits.Disk, Limits.Inodes", by("the size of the writable layer, a tmpfs; `RLIMIT_FSIZE`"), same),
	row("Limits.Output, Limits.Value", by("the host, which reads the pipes"), same),
	row("Options.Network, NetworkLimits.Connections, NetworkLimits.ConnectionsPerSec, NetworkLimits.LookupsPerSec, NetworkLimits.BytesIn, NetworkLimits.BytesOut",
		by("egress, on the host; a connection's run is that of its socket's cgroup"), same),
	row("Options.Heap", by("an option of Node, for programs; it is no boundary"), same),
	row("Options.MaxConcurrentRuns, Options.MaxContexts", by("queues of "+onHost), same),
	row("kernel memory", by("the host watches what no cgroup is charged for, and kills runs that hold too much"), same),
}

var causeRows = []Row{
	row("CauseNone, CauseSignal", by("the exit status of the run's first process, a child of the host"),
		by("the exit status of the supervisor, a child of the host: it waits for the process that the runtime has started, and ends as it does")),
	row("CauseTimeout, CauseCPU, CauseOutput, CauseCanceled", by("the host killed the run's cgroup, and knows why"), same),
	row("CauseMemory", by("counters of the run's cgroup; Node's message about a full heap; the watch of kernel memory"), same),
	row("CausePids", by("counters of the run's cgroup"), same),
}

var denialRows = []Row{
	row("SourceSeccomp", by("notifications of the run's filter"), by("notifications of the same filter; a form of a call that no ordinary program needs, such as a raw socket, is refused by the container's own filter with `ENOSYS` and not reported")),
	row("SourceEgress", by("egress, on the host"), same),
	row("SourceAudit, Options.AuditDenials", by("records of the Landlock domain in the kernel's audit log"), same),
	row("SourceStderr", by("what Node printed last"), same),
}

var fileRows = []Row{
	row("Options.Image, Options.Store, Options.Cwd, Options.Files, Options.Folders, Options.ReadOnlyRoot",
		by("the image, read-only, under a writable layer in memory"),
		by("the same tree, staged in a mount namespace of the host's thread, is the container's root")),
	row("Options.Mounts, Options.MountUser, ReadOnly, CopyOnWrite, ReadWrite, Options.NodeModules, Options.NodeModulesPath",
		by("idmapped mounts and overlays in the tree"), by("the same, in the staged tree: the configuration of the container names none of them")),
	row("Options.UnixSockets", by("the filter"), by(sameFilter)),
	row("Options.Snapshot, NodeRuntime.Snapshot", by(throughTree), same),
	row("NodeRuntime.FS", by(throughTree), same),
}

var processRows = []Row{
	row("Options.Launcher, LauncherExec", by("the entry program enters the jail and executes a new Node"),
		by("`exec` of the runtime starts the entry program, which executes a new Node")),
	row("LauncherZygote, Options.Zygote", by("a fork of a warm Node enters the jail"),
		no("each run is started by the OCI runtime, with a new Node")),
	row("NodeRuntime.Warm", by("waits for the warm Node"), by("returns at once, as with `LauncherExec`")),
	row("PoolOptions.Park", by("a fork of a warm Node waits in the jail for the first program"),
		no("no process can wait in the container for its program, because each run is started by the OCI runtime")),
	row("Options.Hostname", by("a UTS namespace"), by("a UTS namespace, whose name the runtime sets")),
	row("Options.Env", by("the entry program passes the variables to the program alone"), same),
	row("NodeRuntime.Run, NodeRuntime.Exec, NodeRuntime.Command, NodeRuntime.Spawn, NodeRuntime.SpawnCode, NodeRuntime.Evaluate",
		by("a process for each run, started as the launcher does"), same),
	row("NodeRuntime.FollowRun, NodeRuntime.FollowExec, NodeRuntime.FollowCommand, NodeRuntime.FollowEvaluate", by("pipes to the host, with backpressure"), same),
	row("NodeRuntime.NewContext", by("a process that lives until the context is closed"), same),
	row("SpawnOptions.Terminal", by("a terminal of the tree's own devpts, opened by the host; the entry program makes it the controlling terminal"), same),
	row("NodeRuntime.Kill, NodeRuntime.Processes, NodeRuntime.Close", by("pidfds, and killing of cgroups"), by("the same cgroups; pidfds that supervisors report")),
	row("NodeRuntime.Resources", by("the host reads `/proc` and cgroups"), same),
	row("death of the host", by("the kernel kills pid 1, and with it the jail, when the host's thread ends"),
		by("supervisors kill pid 1 and the runs when their sockets to the host are closed")),
}

var hostRows = []Row{
	row("NodeRuntime.Dial, NodeRuntime.NewTransport, NodeRuntime.WaitForListener, NodeRuntime.Listeners",
		by("sockets that the host opens in the network namespace"), same),
	row("Options.HostPorts", by("listeners of the host in the network namespace; egress decides"), same),
	row("Options.Proxy, Options.ProxyNames", by("egress, on the host"), same),
	row("Options.Bindings, Options.Calls", by("frames on a pipe of each run, which the host reads"), same),
	row("Options.Commands, NodeRuntime.AddCommands", by("the listener of the run's filter passes the pipes of a call"), by("the same listener; the runtime's own filter must allow the call that asks")),
}

var wallRows = []Row{
	row("namespaces", by("user, pid, mount, network, ipc, uts and cgroup, by package jail"), by("the same kinds, by the OCI runtime; it enters a user namespace of package jail, whose owner is the sandbox's user on the host, and, without a network, an empty network namespace")),
	row("root directory", by("`pivot_root` by the entry program"), by("`pivot_root` by the OCI runtime, to the staged tree")),
	row("user ids", by("a range that no other jail and no host user has; the guest is uid 1000 in it"), by("the same range, in the user namespace that the container enters")),
	row("capabilities, no_new_privs", by("none, and set, by the entry program"), by("none, and set, by the OCI runtime and again by the entry program")),
	row("system call filter", by("an allowlist, compiled by package seccomp"), by("two filters: the OCI runtime's, from a section that is generated from the same table, and the same allowlist")),
	row("/proc", by("mounts hide all entries but an allowlist; processors, memory and settings in `sys` are the sandbox's own files"),
		by("the runtime's list of masked and read-only paths, and all entries that the allowlist lacks; listed settings in `sys` are the kernel's")),
	row("/sys and /dev", by("the tree's own: files with the limits, six device nodes"), by("the same: they are part of the staged tree")),
}

var machineRows = []Row{
	row("cgroup v1, cgroup v2, cgroup hybrid", by("package cgroup detects the version"), by("package cgroup, for runs; the OCI runtime's `cgroupfs` driver, for the container: crun refuses hosts with a v2 hierarchy that has controllers beside v1")),
	row("cgroup systemd", by("not needed: gaol's cgroups are beside systemd's"), by("with `OCIOptions.SystemdCgroup` systemd makes the container's cgroup, a scope; the runs' are beside systemd's")),
	row("Options.CgroupParent", by("the parent of the jail's cgroup"), by("the parent of the container's cgroup")),
	row("Options.Isolation", by("the default"), by("`--isolation runc`, `crun` or `oci=/path`")),
	row("Options.OCI, OCIOptions.Runtime, OCIOptions.SystemdCgroup", no("it has no OCI runtime"), by("the program that makes the container; with `--isolation runc+systemd` it uses its `systemd` driver")),
	row("Options.WorkInProcess", by("without it, processes of the host's program that package subprocess confines"), same),
	row("Options.Progress", by(onHost), same),
}
