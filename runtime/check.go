package runtime

import (
	"gaol/jail/landlock"
	"gaol/policy"
	"gaol/vfs"
)

// CheckPermissions says by what the kernel would hold o.Permissions, without making
// anything and without privileges: see [policy.Plan] Notes. Of o it reads Permissions,
// AllowDegraded, Cwd and Launcher. Its errors are those of Create. The plan is there
// beside the error if only this machine's kernel is too old for it, or lacks Landlock.
func CheckPermissions(o Options) (*policy.Plan, error) {
	s := settings{cwd: vfs.Workspace, launcher: o.Launcher}
	if err := s.launcher.known(); err != nil {
		return nil, err
	}
	if o.Cwd != "" {
		var err error
		if s.cwd, err = vfs.ParsePath(o.Cwd); err != nil {
			return nil, err
		}
	}
	if err := s.permit(o.Permissions); err != nil {
		return nil, err
	}
	return s.plan, holdable(s.plan, o.AllowDegraded)
}

// holdable refuses what this kernel's Landlock can't hold.
func holdable(p *policy.Plan, degraded bool) error {
	r := ruleset(p)
	if r == nil {
		return nil
	}
	abi, err := landlock.ABI()
	if err != nil {
		return err
	}
	if need, linux, what := r.Needs(); need > abi && !degraded {
		return &landlock.ABIError{Have: abi, Need: need, Linux: linux, What: what}
	}
	return nil
}
