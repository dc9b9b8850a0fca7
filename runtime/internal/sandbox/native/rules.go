package native

import (
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/jail"
	"gaol/jail/gateway"
	"gaol/jail/kernel"
	"gaol/jail/landlock"
	"gaol/jail/mounts"
	"gaol/jail/seccomp"
	"gaol/policy"
	"gaol/runtime/internal/sandbox"
)

// rules are what enforces a plan, apart from the mounts.
type rules struct {
	filter      *seccomp.Filter
	ruleset     *os.File // nil if the plan needs none
	flags       uint32   // of landlock_restrict_self(2)
	noLocalhost bool
	missing     []string // permissions that are not enforced, with Spec.AllowDegraded
}

// close releases the ruleset. It may be called on nil.
func (r *rules) close() {
	if r != nil {
		r.ruleset.Close()
	}
}

// load makes what enforces a plan: the Landlock ruleset inside the jail, where its paths lead to the
// files that the guest sees. The caller closes the rules.
func (s *Sandbox) load(p *policy.Plan) (*rules, error) {
	if p.Spawn.Denied && s.spec.Warm == nil && !s.notifies() { // the start of Node would be denied, too
		return nil, errors.New("this kernel does not notify of system calls: with launcher exec, child processes cannot be denied")
	}
	filter, err := s.compile(p)
	if err != nil {
		return nil, err
	}
	r := &rules{filter: filter, noLocalhost: p.Net.NoLocalhost}
	rs := ruleset(p)
	if rs != nil {
		rs.Degraded = s.spec.AllowDegraded
		if r.missing, err = rs.Missing(); err == nil {
			r.flags = logFlags(s.audited)
			r.ruleset, err = s.Ruleset(rs)
		} else if s.spec.AllowDegraded {
			r.missing, err = []string{"everything that Landlock enforces: " + err.Error()}, nil
		}
	}
	if s.spec.AllowDegraded {
		r.missing = append(r.missing, lacking(kernel.Probe())...)
	}
	return r, err
}

// lacking describes what a sandbox with Spec.AllowDegraded does without on a kernel, apart from Landlock.
func lacking(p kernel.Profile) (list []string) {
	for _, f := range p {
		if what := without[f]; what != "" {
			list = append(list, what+": the kernel lacks "+string(f))
		}
	}
	return list
}

// without describes the rules that a kernel without a feature does not enforce.
var without = map[kernel.Feature]string{
	kernel.Listener:      "reports of denied calls, commands of the host, and netlink",
	kernel.GroupLimits:   "limits of memory, processors and the number of files",
	kernel.SocketLists:   "the limit of memory of sockets",
	kernel.SignalLimits:  "limits of pending signals and message queues",
	kernel.NetModes:      "hidden entries of /proc/net",
	kernel.TerminalLimit: "the limit of terminals",
}

// notifies reports whether filters have listeners. They must unless the sandbox does without.
func (s *Sandbox) notifies() bool {
	return !s.degraded() || !kernel.Probe().Lacks(kernel.Listener)
}

// compile returns the filter of a plan.
func (s *Sandbox) compile(p *policy.Plan) (*seccomp.Filter, error) {
	return seccomp.Compile(s.rows(p), s.notifies())
}

// rows returns the restrictions of the system call filter.
func (s *Sandbox) rows(p *policy.Plan) (rows []seccomp.Row) {
	if s.spec.Commands != nil && s.notifies() {
		rows = append(rows, seccomp.AskCommand...)
	}
	rows = append(rows, refusedCalls(p, s.notifies())...)
	if !s.spec.UnixSockets {
		rows = append(rows, seccomp.NoNamedSockets...)
	}
	return rows
}

// refusedCalls returns the system calls that a plan refuses because no right of Landlock covers
// them, and connects, about which the listener decides. Package seccomp documents the reason for each row.
func refusedCalls(p *policy.Plan, notifies bool) []seccomp.Row {
	var rows []seccomp.Row
	for _, r := range []struct {
		when bool
		rows []seccomp.Row
	}{
		{p.Spawn.Denied, seccomp.NoSpawn},
		{!p.Spawn.Denied && p.Spawn.Only != nil, seccomp.NoMemfd},
		{!p.Net.Inet, seccomp.NoInternet},
		{true, seccomp.LimitedNetlink},
		{p.Net.Inet && !p.Net.UDP && p.Net.Egress == nil, seccomp.NoDatagrams},
		{p.Net.Inet && !p.Net.TCP && p.Net.Egress == nil, seccomp.NoStreams},
		{p.Net.Egress != nil || p.Net.TCP && !p.Net.AnyPort, seccomp.OnlyTCP},
		{p.Net.Egress != nil && notifies, seccomp.AskConnect}, // otherwise only the gateway decides
		{p.NoSignals, seccomp.NoForeignLimits},
		{p.NoMetadata, seccomp.NoMetadata},
		{p.NoRename, seccomp.NoRename},
		{p.NoWatch, seccomp.NoWatch},
	} {
		if r.when {
			rows = append(rows, r.rows...)
		}
	}
	return rows
}

// rights maps the operations of scope fs to Landlock's access rights.
var rights = map[policy.Operation]landlock.Access{
	"read":       landlock.ReadFile,
	"write":      landlock.WriteFile | landlock.MakeReg | landlock.MakeSock | landlock.MakeFifo,
	"readdir":    landlock.ReadDir,
	"create_dir": landlock.MakeDir,
	"rm":         landlock.RemoveFile | landlock.RemoveDir,
	"rename":     landlock.Refer,
	"symlink":    landlock.MakeSym,
	"truncate":   landlock.Truncate,
	"execute":    landlock.Execute,
}

// ruleset returns the Landlock ruleset of a plan, or nil if it needs none.
func ruleset(p *policy.Plan) *landlock.Ruleset {
	ports := p.Net.Inet && p.Net.TCP && !p.Net.AnyPort && p.Net.Egress == nil // otherwise the gateway allows ports
	if !p.Restricts && !p.NoSignals && !p.NoInspect && !ports {
		return nil
	}
	// A ruleset must handle at least one right. MakeChar and MakeBlock cost nothing, because guests
	// cannot make devices anyway. Being in any domain keeps runs from inspecting each other.
	r := &landlock.Ruleset{Handled: landlock.MakeChar | landlock.MakeBlock, Signals: p.NoSignals}
	if ports {
		r.ConnectTCP = &landlock.Ports{Allowed: p.Net.Ports}
	}
	if !p.Restricts {
		// Any ruleset denies Refer where it is not granted.
		r.Handled |= landlock.Refer
		r.Rules = []landlock.Rule{{Path: "/", Tree: true, Access: landlock.Refer}}
		return r
	}
	for _, access := range rights {
		r.Handled |= access
	}
	for _, g := range p.Grants {
		rule := landlock.Rule{Path: g.Place.Path, Tree: g.Place.Tree, Optional: true}
		for _, op := range g.Operations {
			rule.Access |= rights[op]
		}
		r.Rules = append(r.Rules, rule)
	}
	return r
}

// NeedsLandlock reports whether Landlock enforces a part of a plan.
func NeedsLandlock(p *policy.Plan) bool { return ruleset(p) != nil }

// Supported checks that this machine's Landlock can enforce a plan. If it cannot, the error is a
// *landlock.ABIError, or means that Landlock is missing.
func Supported(p *policy.Plan) error {
	r := ruleset(p)
	if r == nil {
		return nil
	}
	abi, err := landlock.ABI()
	if err != nil {
		return err
	}
	if need, linux, what := r.Needs(); need > abi {
		return &landlock.ABIError{Have: abi, Need: need, Linux: linux, What: what}
	}
	return nil
}

// loggingABI is the first version of Landlock with flags for logging (Linux 6.15).
const loggingABI = 7

// logFlags returns the flags of landlock_restrict_self. By default they disable logging:
// otherwise the kernel would log each denial whenever audit is on, as often as the guest
// likes.
func logFlags(audited bool) uint32 {
	abi, err := landlock.ABI()
	switch {
	case err != nil || abi < loggingABI:
		return 0
	case audited: // but not denials of the guest's own domains, which look like ours
		return unix.LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON | unix.LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF
	}
	return unix.LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF | unix.LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF
}

// treeOf returns the file tree of a sandbox with the mounts that its plan requires: hidden, read-only and noexec
// paths, and paths to create in advance.
//
// Preconditions: the sources of mounts are files of this process.
func treeOf(s *sandbox.Spec) jail.Tree {
	p := s.Plan
	own, kept := grantedPlaces(p, s.World)
	t := jail.Tree{
		Image: s.Image, OneOverlay: s.OneOverlay, Owned: s.Owned, Layer: s.Layer, Dirs: s.Dirs, Files: s.Files,
		Disk: s.Disk, Inodes: s.Inodes, DiskDir: s.DiskDir, Commands: s.Commands,
		Make: places(own, s.Make), Keep: places(kept), Sealed: p.Sealed, Pinned: p.Pinned, NotOwn: notOwned(p, s.Permissions),
		Hide: places(p.Hide), Show: places(p.Show), NoExec: places(p.NoExec),
		ReadOnly: places(p.ReadOnly, s.ReadOnly), Writable: places(s.Writable),
	}
	for _, m := range s.Mounts {
		t.Mounts = append(t.Mounts, mounts.Mount{Source: m.Source.(*os.File), Target: m.Target, Access: m.Access, Owner: m.Owner, Overlay: m.Overlay})
	}
	if p.Spawn.Only != nil {
		// A dynamic loader can be asked to load any program that it may map as code, so
		// nothing but the listed programs and the loaders may be mapped so.
		t.NoExec = append(t.NoExec, jail.Place{Path: "/", Tree: true})
		t.Exec = places(p.Spawn.Only)
		for _, n := range s.World.Needed {
			if n.Loader {
				t.Exec = append(t.Exec, jail.Place{Path: n.Path, Tree: n.Tree})
			}
		}
	}
	if p.Net.Egress != nil {
		resolvConf := "nameserver " + gateway.Resolver.String() + "\n"
		t.Layer = append(slices.Clip(t.Layer), jail.File{Path: "/etc/resolv.conf", Mode: 0o644, Data: []byte(resolvConf)})
	}
	return t
}

// notOwned returns a function that reports the paths that must not belong to the guest:
// those where chmod is denied and only the files' owner enforces it.
func notOwned(p *policy.Plan, permissions policy.Permissions) func(string) bool {
	if p.NoMetadata {
		return nil
	}
	return func(at string) bool {
		contains := func(q policy.Place) bool { return at == q.Path || q.Tree && strings.HasPrefix(at, q.Path+"/") }
		return !permissions.Decide(policy.FS, "chmod", at).Allowed && !slices.ContainsFunc(p.ReadOnly, contains) && !p.Hides(policy.Place{Path: at})
	}
}

// grantedPlaces returns the places below the guest's own folders in which a plan grants an
// operation: own are those where the guest may create files, kept are the others. Both must exist before the ruleset is made, because Landlock grants rights on files that
// exist, and the guest may be unable to create their parents.
func grantedPlaces(p *policy.Plan, w policy.World) (own, kept []policy.Place) {
	isInside := func(at policy.Place) bool {
		return slices.ContainsFunc(slices.Concat(w.Own, w.Shared), func(dir string) bool { return strings.HasPrefix(at.Path, dir+"/") })
	}
	for _, g := range p.Grants {
		switch {
		case !isInside(g.Place):
		case slices.ContainsFunc(g.Operations, sandbox.Creates):
			own = append(own, g.Place)
		case g.Place.Tree:
			kept = append(kept, g.Place)
		}
	}
	for _, at := range p.Show {
		if !p.Restricts && isInside(at) { // without Landlock everything is allowed in it
			own = append(own, at)
		}
	}
	return own, kept
}

func places(lists ...[]policy.Place) (out []jail.Place) {
	for _, p := range slices.Concat(lists...) {
		out = append(out, jail.Place(p))
	}
	return out
}
