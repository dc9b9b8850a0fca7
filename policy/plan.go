package policy

// World is what lowering must know of the guest's tree. All paths are absolute
// and clean.
type World struct {
	Own    []string // folders that belong to the guest, /workspace
	Shared []string // folders anyone may write to, /tmp

	// Cwd is the working directory. Permissions may hide it: whoever applies the
	// plan leaves an empty folder there, to stand in.
	Cwd string

	Needed []Need // what Node itself needs, whatever the permissions are
}

// Need is a place without which no guest starts. Its operations are granted
// there besides what the permissions allow, and so are stat and readlink.
type Need struct {
	Path       string
	Tree       bool // the folder and all below; else this one file
	Operations []Operation
	Loader     bool // stays executable even with a list of programs: ld.so
	Reason     string
}

// Place is a folder with all below it, or one file.
type Place struct {
	Path string
	Tree bool // else one file: whoever applies it must refuse a folder there
}

// Grant is what Landlock grants at a place. It holds for all below, and adds to
// what is granted above. Operations are Landlock's only: no stat, readlink, chmod.
// Of a single file's, those about folders mean nothing to Landlock.
type Grant struct {
	Place      Place
	Operations []Operation
}

// Note is what a rule lowers to, for people. Rule is -1 for the scope's default.
type Note struct {
	Scope string
	Rule  int
	Text  string
}

// Plan is what the kernel is to hold. It is data: nothing has been opened.
type Plan struct {
	// Restricts says that a Landlock ruleset is needed for files. Without it
	// there are no Grants, and everything is left to the mounts.
	Restricts bool
	Grants    []Grant

	// Hide are places of which nothing may be seen, Show those in them that may:
	// the longest path wins. "/" may be in Hide.
	Hide, Show []Place

	// ReadOnly and NoExec are held by mount flags. Nothing below them is allowed
	// more.
	ReadOnly, NoExec []Place

	// Pinned are folders that lead to a place in Hide, ReadOnly or NoExec, or to a grant,
	// and folders and files with a grant of their own, that the guest could rename, and
	// then put another in their place.
	// Mounted on themselves they answer EBUSY.
	Pinned []string

	// Sealed are folders of World.Own that are not to belong to the guest, since
	// Landlock holds no chmod. Only places below them that a Grant lets it
	// write to are the guest's.
	Sealed []string

	NoMetadata bool // refuse chmod, chown, utimes and setxattr calls altogether
	NoRename   bool // refuse rename and link calls altogether
	NoWatch    bool // refuse inotify altogether: a watched folder tells names, which Landlock does not see

	Spawn Spawn
	Net   Net

	NoSignals bool // no signals to processes outside of the run
	NoInspect bool // no others in /proc, no ptrace

	Notes []Note
}

// Spawn is which programs may be started.
type Spawn struct {
	Denied bool
	Only   []Place // nil: any program. Grants have execute only there
}

// Net is which sockets of the internet's kinds there are. They reach nothing but
// the loopback device.
type Net struct {
	Inet    bool     // any at all: TCP or UDP
	TCP     bool     // bind and listen on any port
	UDP     bool     // any port, both ways
	Ports   []uint16 // TCP connects to these only, in order
	AnyPort bool     // TCP connects to any; Ports is nil
}
