package jail

/*
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>

static int quit(void *unused) {
	(void)unused;
	return 0;
}

// Returns the number of a process that has ended, in a user namespace of its own, or a
// negative errno. No handler of this process may run in one that shares its memory.
static int end_in_user_namespace(void) {
	char stack[16384] __attribute__((aligned(16)));
	sigset_t all, old;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	int pid = clone(quit, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_NEWUSER, NULL);
	int err = errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	return pid < 0 ? -err : pid;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/jail/chroot"
)

// setIDMap gives a mount that is nowhere yet the map of a user namespace.
func setIDMap(fd int, users *os.File) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(users.Fd())}
	switch err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err {
	case nil:
		return nil
	case unix.EINVAL, unix.EPERM, unix.ENOSYS: // EPERM: it has a map already
		return fmt.Errorf("%w (%w)", ErrNoIDMap, err)
	default:
		return os.NewSyscallError("mount_setattr", err)
	}
}

// idMaps are user namespaces by the owner that they give to the guest. Each takes half
// a millisecond to make, and a jail's mounts mostly have one owner.
type idMaps map[[2]int]*os.File

func (maps idMaps) of(uid, gid, firstID int) (*os.File, error) {
	owner := [2]int{uid, gid}
	if maps[owner] == nil {
		f, err := idMap(swapped(uid, GuestUID, firstID), swapped(gid, GuestGID, firstID))
		if err != nil {
			return nil, err
		}
		maps[owner] = f
	}
	return maps[owner], nil
}

func (maps idMaps) close() {
	for _, f := range maps {
		f.Close()
	}
}

// swapped maps the ids of a file system to those of a jail: an owner's to the guest's,
// the guest's, if it is among them, to the owner's, and the others to their own numbers.
func swapped(owner, guest, firstID int) []syscall.SysProcIDMap {
	list := []syscall.SysProcIDMap{{ContainerID: owner, HostID: firstID + guest, Size: 1}}
	if owner != guest && owner < idsEach {
		list = append(list, syscall.SysProcIDMap{ContainerID: guest, HostID: firstID + owner, Size: 1})
	}
	from := 0
	for _, taken := range []int{min(owner, guest), max(owner, guest), idsEach} {
		if to := min(taken, idsEach); to > from {
			list = append(list, syscall.SysProcIDMap{ContainerID: from, HostID: firstID + from, Size: to - from})
		}
		from = taken + 1
	}
	return list
}

// idMap makes a user namespace for nothing but its map.
func idMap(users, groups []syscall.SysProcIDMap) (f *os.File, err error) {
	f, err = makeIDMap(users, groups)
	if errors.Is(err, unix.EPERM) { // in a chroot
		err = chroot.Run(func() (err error) {
			f, err = makeIDMap(users, groups)
			return err
		})
	}
	return f, err
}

// makeIDMap makes a process in the user namespace, which ends at once. Until it is waited
// for, the kernel keeps its credentials, and with them the namespace. To start a program
// would take ten times as long, and one that the host leaves behind when it is killed
// could live on.
func makeIDMap(users, groups []syscall.SysProcIDMap) (*os.File, error) {
	pid := int(C.end_in_user_namespace())
	if pid < 0 {
		return nil, fmt.Errorf("make user map: %w", os.NewSyscallError("clone", unix.Errno(-pid)))
	}
	// The process has no exit signal: others that wait for any child do not get it.
	defer func() { _, _ = unix.Wait4(pid, nil, unix.WALL, nil) }()
	proc := "/proc/" + strconv.Itoa(pid)
	if err := errors.Join(writeIDMap(proc+"/uid_map", users), writeIDMap(proc+"/gid_map", groups)); err != nil {
		return nil, fmt.Errorf("make user map: %w", err)
	}
	return openFD(proc+"/ns/user", unix.O_RDONLY)
}

func writeIDMap(path string, ids []syscall.SysProcIDMap) error {
	var text []byte
	for _, m := range ids {
		text = fmt.Appendf(text, "%d %d %d\n", m.ContainerID, m.HostID, m.Size)
	}
	return writeFile(path, string(text))
}
