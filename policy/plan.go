package policy

// World describes the guest's file tree for lowering. All paths are absolute and clean.
type World struct {
	Own    []string // folders that belong to the guest, such as /workspace
	Shared []string // folders that every user may write to, such as /tmp

	Needed []Need // the needs of Node itself, whatever the permissions are

	// HostPorts are the ports of localhost that lead to the host's localhost, if the rules
	// allow to connect to them.
	HostPorts []uint16
}

// Need is a place without which no guest starts. Its operations, stat and readlink are
// granted there in addition to the permissions.
type Need struct {
	Path       string
	Tree       bool // the folder and all below it; otherwise one file
	Operations []Operation
	Loader     bool // remains executable even with a list of programs, such as ld.so
	Reason     string
}

// Place is one file, or a folder with all below it.
type Place struct {
	Path string
	Tree bool // a folder; otherwise one file, and the jail must reject a folder there
}

// Grant is the set of rights that Landlock grants at a place and below it, in addition to grants above.
// Operations never contain stat, readlink and chmod, which Landlock does not restrict.
// Operations on folders have no effect on a single file.
type Grant struct {
	Place      Place
	Operations []Operation
}

// Note describes how a rule is enforced, for people. Rule is -1 for the scope's default.
type Note struct {
	Scope string
	Rule  int
	Text  string
}

// Plan lists the mechanisms that the kernel must enforce. It is data: it holds no open resources.
type Plan struct {
	// Restricts is whether files need a Landlock ruleset. Without it, Grants is empty and
	// the mounts enforce everything.
	Restricts bool
	Grants    []Grant

	// Hide are places that the guest must not see; Show are exceptions within them. The
	// longest path decides. "/" may be in Hide.
	Hide, Show []Place

	// ReadOnly and NoExec are enforced by mount flags. Nothing below them is allowed more.
	ReadOnly, NoExec []Place

	// Pinned are folders on the path to a place in Hide, ReadOnly or NoExec or to a grant,
	// and folders and files with their own grant, that the guest could rename in order to
	// put another in their place. They are bind-mounted on themselves, so that renaming
	// them fails with EBUSY.
	Pinned []string

	// Sealed are folders of World.Own that the guest must not own, because Landlock cannot
	// restrict chmod. The guest owns only the places below them that a Grant lets it write
	// to.
	Sealed []string

	NoMetadata bool // refuse chmod, chown, utimes and setxattr calls everywhere
	NoRename   bool // refuse rename and link calls everywhere
	NoWatch    bool // refuse inotify everywhere: a watched folder reveals names, and Landlock does not restrict watching

	Spawn Spawn
	Net   Net

	NoSignals bool // no signals to processes outside the run
	NoInspect bool // /proc shows no other processes

	Notes []Note
}

// Spawn describes which programs may start.
type Spawn struct {
	Denied bool
	Only   []Place // nil: any program; otherwise execute is granted only there
}

// Net describes which internet sockets exist and which hosts they reach: the loopback device,
// and external hosts with Egress.
type Net struct {
	Inet    bool     // TCP or UDP
	TCP     bool     // bind and listen on any port
	UDP     bool     // any port of localhost, both directions
	Ports   []uint16 // without Egress, the only ports that TCP connects to, in order
	AnyPort bool     // TCP connects to any port; Ports is nil

	// Egress decides about external hosts; nil: all are denied. With it, the jail's network
	// refuses connections to ports of localhost that are not in Local, and datagrams to
	// localhost without UDP. Datagrams to a resolver always pass.
	Egress *Egress
	Local  []PortRange // in order, not adjacent; without World.HostPorts
	Host   []uint16    // the ports in World.HostPorts that TCP may connect to

	// NoLocalhost denies localhost to a run whose runtime may use it.
	NoLocalhost bool
}
