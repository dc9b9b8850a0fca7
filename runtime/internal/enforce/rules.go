package enforce

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/jail"
	"gaol/jail/landlock"
	"gaol/jail/seccomp"
	"gaol/policy"
)

// Rules enforce permissions in the processes of a runtime, or of a single run whose
// permissions are narrower.
type Rules struct {
	Permissions policy.Permissions // complete: no scope is left to a default
	Plan        *policy.Plan

	// Missing lists what the kernel cannot enforce. It is empty unless Load was allowed
	// to degrade.
	Missing []string

	filter  *seccomp.Filter
	ruleset *os.File // nil if the plan needs none
}

// Features are what a runtime's processes may use that no permission decides.
type Features struct {
	UnixSockets bool // unix sockets with names
	Commands    bool // commands of the host
}

// Compile makes the system call filter. It needs no jail.
func Compile(p policy.Permissions, plan *policy.Plan, f Features) (*Rules, error) {
	var rows []seccomp.Row
	if f.Commands {
		rows = append(rows, seccomp.AskCommand...)
	}
	rows = append(rows, refusedCalls(plan)...)
	if !f.UnixSockets {
		rows = append(rows, seccomp.NoNamedSockets...)
	}
	filter, err := seccomp.Compile(rows, true)
	if err != nil {
		return nil, err
	}
	return &Rules{Permissions: p, Plan: plan, filter: filter}, nil
}

// Load makes the Landlock ruleset inside the jail that it is for, where its paths lead to the
// files that the guest sees. With degraded, it records the missing features in Missing instead
// of failing.
func (r *Rules) Load(j *jail.Jail, degraded bool) error {
	rs := ruleset(r.Plan)
	if rs == nil {
		return nil
	}
	rs.Degraded = degraded
	var err error
	if r.Missing, err = rs.Missing(); err == nil {
		r.ruleset, err = j.Ruleset(rs)
	} else if degraded {
		r.Missing, err = []string{"everything that Landlock enforces: " + err.Error()}, nil
	}
	return err
}

// Close releases the ruleset. It may be called on nil.
func (r *Rules) Close() {
	if r != nil && r.ruleset != nil {
		r.ruleset.Close()
	}
}

// Apply puts a command's process under the rules. audited says whether the kernel should
// log what Landlock denies.
func (r *Rules) Apply(c *jail.Command, audited bool) {
	c.Filter, c.Ruleset, c.NoLocalhost = r.filter, r.ruleset, r.Plan.Net.NoLocalhost
	if r.ruleset != nil {
		c.RulesetFlags = logFlags(audited)
	}
}

// refusedCalls returns the system calls that a plan refuses, because Landlock has no right for
// them. Package seccomp has the reason for each row.
func refusedCalls(p *policy.Plan) []seccomp.Row {
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
		{p.Net.Egress != nil, seccomp.AskConnect},
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
	// A ruleset must handle at least one right. A guest has no use for devices, and
	// cannot make any. Being in any domain keeps runs from inspecting each other.
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

// Supported reports what this machine's Landlock cannot enforce of a plan, as a
// *landlock.ABIError, or that it has no Landlock.
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

// ConfigureJail sets the places of a jail as a plan requires: those that are hidden,
// read-only or not executable, and those that must exist in advance.
func ConfigureJail(spec *jail.Spec, p *policy.Plan, permissions policy.Permissions, w policy.World) {
	spec.Hide, spec.Show = places(p.Hide), places(p.Show)
	spec.ReadOnly, spec.NoExec = places(p.ReadOnly), places(p.NoExec)
	spec.Sealed, spec.Pinned = p.Sealed, p.Pinned
	spec.Make, spec.Keep = grantedPlaces(p, w)
	spec.NotOwn = notOwned(p, permissions)
	spec.Loopback = p.Net.Inet
	spec.Identified = p.Net.Egress != nil
	spec.HideProcesses = p.NoInspect
	if p.Spawn.Only != nil {
		// A dynamic loader can be asked to load any program that it may map as code, so
		// nothing but the listed programs and the loaders may be mapped so.
		spec.NoExec = append(spec.NoExec, jail.Place{Path: "/", Tree: true})
		spec.Exec = places(p.Spawn.Only)
		for _, n := range w.Needed {
			if n.Loader {
				spec.Exec = append(spec.Exec, jail.Place{Path: n.Path, Tree: n.Tree})
			}
		}
	}
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
func grantedPlaces(p *policy.Plan, w policy.World) (own, kept []jail.Place) {
	isInside := func(at policy.Place) bool {
		return slices.ContainsFunc(slices.Concat(w.Own, w.Shared), func(dir string) bool { return strings.HasPrefix(at.Path, dir+"/") })
	}
	for _, g := range p.Grants {
		switch {
		case !isInside(g.Place):
		case slices.ContainsFunc(g.Operations, creates):
			own = append(own, jail.Place(g.Place))
		case g.Place.Tree:
			kept = append(kept, jail.Place(g.Place))
		}
	}
	for _, at := range p.Show {
		if !p.Restricts && isInside(at) { // without Landlock everything is allowed in it
			own = append(own, jail.Place(at))
		}
	}
	return own, kept
}

func creates(op policy.Operation) bool {
	return op == "write" || op == "create_dir" || op == "symlink"
}

// Changes reports whether a read-only mount refuses the operation.
func Changes(op policy.Operation) bool {
	return creates(op) || op == "rm" || op == "rename" || op == "truncate"
}

func places(list []policy.Place) []jail.Place {
	var out []jail.Place
	for _, p := range list {
		out = append(out, jail.Place(p))
	}
	return out
}
