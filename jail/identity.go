package jail

import (
	"cmp"
	"context"
	"path"

	"gaol/jail/cgroup"
	"gaol/jail/step"
)

// newSlot takes a slot in a state folder, which it makes and sweeps first.
func newSlot(ctx context.Context, stateDir, cgroupParent string) (*slot, error) {
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
	return s, step.Wrap("register", stateDir, err)
}

// Identity is a host user and a cgroup for a process outside jails. No jail and no other Identity of
// the machine shares them. If the host dies, the next host removes the cgroup, as with jails.
type Identity struct {
	slot     *slot
	stateDir string
	cgroup   string
}

// NewIdentity reserves an identity, in the same folder and with the same parent as a [Spec]'s.
func NewIdentity(ctx context.Context, stateDir, cgroupParent string) (*Identity, error) {
	stateDir = cmp.Or(stateDir, DefaultStateDir)
	s, err := newSlot(ctx, stateDir, cgroupParent)
	if err != nil {
		return nil, err
	}
	return &Identity{s, stateDir, path.Join(cgroupParent, s.name())}, nil
}

// ID returns the number of the host's user and group.
func (i *Identity) ID() int { return i.slot.firstHostID() }

// Cgroup returns the path of the cgroup, for [cgroup.New]. It does not exist yet.
func (i *Identity) Cgroup() string { return i.cgroup }

// Release kills the processes in the cgroup, removes it, and frees the identity.
func (i *Identity) Release() error { return i.slot.clear(i.stateDir, i.cgroup, nil) }
