package doctor

import "gaol/jail/chroot"

const rootCure = "start gaol outside of the chroot, or make its folder the root of a mount namespace: " +
	"unshare -m sh -c 'mount --rbind DIR DIR && cd DIR && pivot_root . . && umount -l . && exec gaol ...'"

// lookRoot looks whether the root is that of the mount namespace. Where it is not, jails are made
// all the same, if a thread can leave the chroot.
func lookRoot(x *examination) finding {
	if !x.root {
		return degraded("can't be looked at", "run gaol doctor as root")
	}
	is, err := chroot.Detect()
	if err != nil {
		return missing(err.Error(), "in a container, give it CAP_SYS_ADMIN and CAP_SYS_CHROOT (docker run --privileged)")
	}
	if !is {
		return ok("the mount namespace's own")
	}
	if err := chroot.Run(func() error { return nil }); err != nil {
		return missing(err.Error(), rootCure)
	}
	x.chroot = true
	return ok("a chroot, which the mounts of jails are made without")
}
