package runtime

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"gaol/policy"
	"gaol/runtime/internal/enforce"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/sandbox/native"
)

// tree describes the file tree of the settings for package enforce.
func (s *settings) tree() enforce.Tree {
	t := enforce.Tree{Image: s.image, Cwd: s.cwd, Node: s.node, Libraries: s.libraries, HostPorts: s.hostPorts}
	for _, m := range s.Mounts {
		if m.Access != ReadOnly {
			t.Writable = append(t.Writable, m.Target)
		}
	}
	if s.owned {
		t.Writable = append(t.Writable, "/")
	}
	return t
}

// setPermissions completes permissions by the defaults, and refuses what cannot be enforced.
func (s *settings) setPermissions(p policy.Permissions) (err error) {
	s.Permissions = p.Clone().Over(policy.Default())
	if s.plan, err = policy.Lower(s.Permissions, s.tree().World()); err != nil {
		return err
	}
	return s.checkStart(s.Permissions, s.plan)
}

// narrowed returns the complete permissions, and their plan, of a run whose permissions are narrower than its runtime's. Runs
// share the runtime's mounts, so only rules that need none can be narrower. The launcher and the
// filter depend on the permissions of both together.
//
// Of the folders of programs the run may read its own, and if the runtime restricts reading,
// whose names no other run can guess.
func (s *settings) narrowed(p policy.Permissions, folder string) (complete policy.Permissions, plan *policy.Plan, err error) {
	tree := s.tree()
	if !s.plan.Restricts {
		tree.Program = path.Join(sandbox.ProgramDir, folder)
	}
	if plan, err = policy.LowerRun(s.Permissions, p, tree.World()); err != nil {
		return p, nil, err
	}
	if plan.NoInspect && !s.plan.NoInspect {
		return p, nil, fmt.Errorf("process: inspect is denied by how /proc is mounted: deny it in the runtime's permissions: %w", ErrUnsupported)
	}
	if err := tree.CheckPlaces(p); err != nil {
		return p, nil, err
	}
	complete = p.Over(s.Permissions)
	return complete, plan, s.checkStart(complete, plan)
}

// checkStart refuses permissions that the isolation cannot enforce, and those under which the launcher cannot start Node.
func (s *settings) checkStart(p policy.Permissions, plan *policy.Plan) error {
	if err := s.Isolation.checkPlan(plan, s.AllowDegraded); err != nil {
		return err
	}
	if s.Launcher == LauncherZygote {
		return nil
	}
	if err := s.Isolation.checkExec(plan); err != nil || s.mayStartNode(p, plan) {
		return err
	}
	if err := s.Isolation.Check(FeatureZygote); err != nil {
		return fmt.Errorf("childProcess: %s is not among the programs that may be started: list it: %w", s.nodePath(), err)
	}
	return fmt.Errorf("childProcess: %s is not among the programs that may be started, and LauncherExec starts it for each run: list it, or use LauncherZygote: %w", s.nodePath(), ErrUnsupported)
}

// mayStartNode reports whether a new Node process can be started as the first of a run. With
// a list of programs it is executed like any other program, which needs both scopes.
func (s *settings) mayStartNode(p policy.Permissions, plan *policy.Plan) bool {
	return plan.Spawn.Only == nil ||
		p.Decide(policy.ChildProcess, "spawn", s.nodePath()).Allowed && p.Decide(policy.FS, "execute", s.nodePath()).Allowed
}

// Missing describes the parts of the runtime's permissions that the kernel does not enforce.
// It is empty without Options.AllowDegraded.
func (rt *NodeRuntime) Missing() []string { return slices.Clone(rt.sandbox.Missing()) }

// CheckPermissions returns how the kernel would enforce o.Permissions, without making
// anything and without privileges: see [policy.Plan] Notes. Of o it reads Permissions,
// AllowDegraded, Cwd, HostPorts, Isolation, OCI and Launcher. It returns the same errors as Create. If the only
// error is that this machine's kernel is too old for the plan or lacks Landlock, the plan is returned, too.
func CheckPermissions(o Options) (*policy.Plan, error) {
	s, err := Options{
		Permissions: o.Permissions, Cwd: o.Cwd, HostPorts: o.HostPorts, Isolation: o.Isolation, OCI: o.OCI, Launcher: o.Launcher, Proxy: "none",
	}.resolve()
	if refused, ok := errors.AsType[*OptionError](err); ok && refused.Option == "Permissions" {
		err = refused.Err
	}
	if err != nil {
		return nil, err
	}
	if o.AllowDegraded || s.Isolation == IsolationGVisor || s.Isolation == IsolationMicroVM { // this machine's kernel is not the sandbox's
		return s.plan, nil
	}
	return s.plan, native.Supported(s.plan)
}
