package runtime

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/jail"
	"gaol/jail/landlock"
	"gaol/jail/seccomp"
	"gaol/policy"
)

// guard is what holds permissions: those of a runtime, or of a run that has fewer.
type guard struct {
	permissions policy.Permissions // whole
	plan        *policy.Plan
	filter      *seccomp.Filter
	ruleset     *os.File // nil: the plan needs none
	missing     []string // what the kernel can't hold; only with AllowDegraded
}

// newGuard compiles what needs no jail.
func (s settings) newGuard(p policy.Permissions, plan *policy.Plan) (*guard, error) {
	rows := restrictions(plan)
	if !s.unixSockets {
		rows = append(rows, seccomp.NoNamedSockets...)
	}
	filter, err := seccomp.Compile(rows, true)
	if err != nil {
		return nil, err
	}
	return &guard{permissions: p, plan: plan, filter: filter}, nil
}

// restrict makes the ruleset, in the jail that it is for.
func (g *guard) restrict(j *jail.Jail, degraded bool) error {
	r := ruleset(g.plan)
	if r == nil {
		return nil
	}
	r.Degraded = degraded
	var err error
	if g.missing, err = r.Missing(); err == nil {
		g.ruleset, err = j.Ruleset(r)
	} else if degraded {
		g.missing, err = []string{"all that Landlock holds: " + err.Error()}, nil
	}
	return err
}

func (g *guard) close() {
	if g != nil && g.ruleset != nil {
		g.ruleset.Close()
	}
}

// apply has the command's process be held.
func (g *guard) apply(c *jail.Command, s settings) {
	c.Filter, c.Ruleset = g.filter, g.ruleset
	if g.ruleset != nil {
		c.RulesetFlags = s.logging()
	}
}

// restrictions are the calls that a plan refuses.
func restrictions(p *policy.Plan) []seccomp.Row {
	var rows []seccomp.Row
	for _, r := range []struct {
		when bool
		rows []seccomp.Row
	}{
		{p.Spawn.Denied, seccomp.NoSpawn},
		{!p.Spawn.Denied && p.Spawn.Only != nil, seccomp.NoMemfd},
		{!p.Net.Inet, seccomp.NoInternet},
		{true, seccomp.FewNetlink},
		{p.Net.Inet && !p.Net.UDP, seccomp.NoDatagrams},
		{p.Net.Inet && !p.Net.TCP, seccomp.NoStreams},
		{p.Net.Inet && p.Net.TCP && !p.Net.AnyPort, seccomp.OnlyTCP},
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

// rights are what Landlock calls the operations of fs that it knows.
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

// ruleset is nil for a plan that needs none.
func ruleset(p *policy.Plan) *landlock.Ruleset {
	ports := p.Net.Inet && p.Net.TCP && !p.Net.AnyPort
	if !p.Restricts && !p.NoSignals && !p.NoInspect && !ports {
		return nil
	}
	// Of devices a guest has no use, and can make none. A domain must handle
	// something, and is what keeps one run from looking into another.
	r := &landlock.Ruleset{Handled: landlock.MakeChar | landlock.MakeBlock, Signals: p.NoSignals}
	if ports {
		r.ConnectTCP = &landlock.Ports{Allowed: p.Net.Ports}
	}
	if !p.Restricts {
		// Where anything is handled, Refer is denied but where it is granted.
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

// cover has a jail be made as the plan says.
func cover(spec *jail.Spec, p *policy.Plan, permissions policy.Permissions, w policy.World) {
	spec.Hide, spec.Show = places(p.Hide), places(p.Show)
	spec.ReadOnly, spec.NoExec = places(p.ReadOnly), places(p.NoExec)
	spec.Sealed, spec.Pinned = p.Sealed, p.Pinned
	spec.Make, spec.Keep = furnished(p, w)
	spec.NotOwn = notOwn(p, permissions)
	spec.Loopback = p.Net.Inet
	spec.HideProcesses = p.NoInspect
	if p.Spawn.Only != nil {
		// A loader can be told to load any program that it may map as code.
		spec.NoExec = append(spec.NoExec, jail.Place{Path: "/", Tree: true})
		spec.Exec = places(p.Spawn.Only)
		for _, n := range w.Needed {
			if n.Loader {
				spec.Exec = append(spec.Exec, jail.Place{Path: n.Path, Tree: n.Tree})
			}
		}
	}
}

// notOwn tells of paths where chmod is denied, and held by nothing but whose files they are.
func notOwn(p *policy.Plan, permissions policy.Permissions) func(string) bool {
	if p.NoMetadata {
		return nil
	}
	return func(at string) bool {
		fixed := func(q policy.Place) bool { return at == q.Path || q.Tree && strings.HasPrefix(at, q.Path+"/") }
		return !permissions.Decide(policy.FS, "chmod", at).Allowed && !slices.ContainsFunc(p.ReadOnly, fixed) && !p.Hides(policy.Place{Path: at})
	}
}

// furnished are the places below the guest's own folders that it is granted something
// in: own, if it may make something there, or kept as whose they are. A grant is for what
// is there when the ruleset is made, and above some the guest can make nothing.
func furnished(p *policy.Plan, w policy.World) (own, kept []jail.Place) {
	isInside := func(at policy.Place) bool {
		return slices.ContainsFunc(slices.Concat(w.Own, w.Shared), func(dir string) bool { return strings.HasPrefix(at.Path, dir+"/") })
	}
	for _, g := range p.Grants {
		switch {
		case !isInside(g.Place):
		case slices.ContainsFunc(g.Operations, makes):
			own = append(own, jail.Place(g.Place))
		case g.Place.Tree:
			kept = append(kept, jail.Place(g.Place))
		}
	}
	for _, at := range p.Show {
		if !p.Restricts && isInside(at) { // without Landlock, all is allowed in what is shown
			own = append(own, jail.Place(at))
		}
	}
	return own, kept
}

func makes(op policy.Operation) bool { return op == "write" || op == "create_dir" || op == "symlink" }

// changes are the operations of a grant that a read-only mount refuses.
func changes(op policy.Operation) bool {
	return makes(op) || op == "rm" || op == "rename" || op == "truncate"
}

func places(list []policy.Place) []jail.Place {
	var out []jail.Place
	for _, p := range list {
		out = append(out, jail.Place(p))
	}
	return out
}

// startable refuses permissions under which the launcher can't start Node.
func (s *settings) startable(p policy.Permissions, plan *policy.Plan) error {
	if s.launcher == LauncherExec && !s.startsNode(p, plan) {
		return fmt.Errorf("childProcess: %s is not among the programs that may be started, and LauncherExec starts it for each run: list it, or use LauncherZygote: %w", s.nodePath(), ErrUnsupported)
	}
	return nil
}

// startsNode reports whether a new process of Node can be started, as the first of a run.
// With a list it is executed as any other program, which takes both scopes.
func (s *settings) startsNode(p policy.Permissions, plan *policy.Plan) bool {
	return plan.Spawn.Only == nil ||
		p.Decide(policy.ChildProcess, "spawn", s.nodePath()).Allowed && p.Decide(policy.FS, "execute", s.nodePath()).Allowed
}

// permit takes permissions over the defaults, and refuses what can't be held.
func (s *settings) permit(p policy.Permissions) (err error) {
	s.permissions = p.Clone().Over(policy.Default())
	if s.plan, err = policy.Lower(s.permissions, s.world()); err != nil {
		return err
	}
	return s.startable(s.permissions, s.plan)
}

// narrow is permit for a run.
func (s settings) narrow(p policy.Permissions) (*guard, error) {
	plan, err := policy.LowerRun(s.permissions, p, s.world())
	if err != nil {
		return nil, err
	}
	if plan.NoInspect && !s.plan.NoInspect {
		return nil, fmt.Errorf("process: inspect is denied by how /proc is mounted: deny it in the runtime's permissions: %w", ErrUnsupported)
	}
	if err := placed(p, s.image); err != nil {
		return nil, err
	}
	whole := p.Over(s.permissions)
	if err := s.startable(whole, plan); err != nil {
		return nil, err
	}
	return s.newGuard(whole, plan)
}

// logging are the flags of a ruleset: without them the kernel would note what a guest
// is denied whenever its audit is on, as often as the guest likes.
func (s settings) logging() uint32 {
	abi, err := landlock.ABI()
	switch {
	case err != nil || abi < loggingABI:
		return 0
	case s.audit: // not those of the guest's own domains, which look like ours
		return unix.LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON | unix.LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF
	}
	return unix.LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF | unix.LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF
}

// Missing are what the kernel does not hold of the runtime's permissions, in words.
// There is nothing without Options.AllowDegraded.
func (rt *NodeRuntime) Missing() []string { return slices.Clone(rt.guard.missing) }

// loggingABI is the first version of Landlock that has those flags (Linux 6.15).
const loggingABI = 7
