package jail

import (
	"cmp"
	"context"
	"errors"
	"path"

	"gaol/jail/cgroup"
	"gaol/jail/mounts"
	"gaol/jail/step"
)

// Identity is a range of host users and a cgroup, for a jail or for a process outside jails. No other
// Identity of the machine shares them. If the host dies, the next host removes the cgroup.
type Identity struct {
	*slot
	stateDir string
	cgroup   string
}

// NewIdentity reserves an identity, in the same folder and with the same parent as a [Spec]'s. It
// makes the folder and sweeps it first.
func NewIdentity(ctx context.Context, stateDir, cgroupParent string) (*Identity, error) {
	stateDir = cmp.Or(stateDir, DefaultStateDir)
	if _, err := cgroup.Detect(); err != nil { // first: a sweep needs the cgroups
		return nil, step.Wrap("find", "cgroups", err)
	}
	if err := makeStateDirs(stateDir); err != nil {
		return nil, err
	}
	sweepOnce(stateDir)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := takeSlot(jailsDir(stateDir), cgroupParent)
	if err != nil {
		return nil, step.Wrap("register", stateDir, err)
	}
	return &Identity{s, stateDir, path.Join(cgroupParent, s.name())}, nil
}

// ID returns the number of the host's user and group, for a process, or of the first ones of a jail.
func (i *Identity) ID() int { return firstID + i.number*mounts.IDsPerJail }

// Cgroup returns the path of the cgroup, for [cgroup.New]. It does not exist yet.
func (i *Identity) Cgroup() string { return i.cgroup }

// Release kills the processes in the cgroup, removes it, and frees the identity.
func (i *Identity) Release() error { return i.clear(nil) }

// clear removes the cgroup with its processes and the container, and frees the identity. It does not
// free it after an error, which may be an earlier one.
func (i *Identity) clear(failed error) error {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	failed = errors.Join(failed, step.Wrap("clear", i.name(), cgroup.Remove(ctx, i.cgroup)),
		step.Wrap("remove", "container", i.removeContainer()))
	if failed != nil {
		swept.Delete(i.stateDir) // the claim stays, unlocked, for a sweep
		return errors.Join(failed, i.file.Close())
	}
	return step.Wrap("release", i.name(), i.release())
}
