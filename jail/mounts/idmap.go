package mounts

/*
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>

static int quit(void *unused) {
	(void)unused;
	return 0;
}

// Returns the pid of an ended, unreaped process in a new user namespace, or a negative
// errno. Signals are blocked meanwhile: no handler of the Go program may run in the child,
// which shares its memory.
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

	"gaol/internal/kernfile"
)

// setIDMap sets the id map of a detached mount to a user namespace's map.
func setIDMap(mount, users *os.File) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(users.Fd())}
	err := setMountAttr(int(mount.Fd()), "", unix.AT_EMPTY_PATH, attr)
	for _, unsupported := range []error{unix.EINVAL, unix.EPERM, unix.ENOSYS} { // EPERM: mapped already
		if errors.Is(err, unsupported) {
			return fmt.Errorf("%w (%w)", ErrNoIDMap, unsupported)
		}
	}
	return err
}

// idMaps caches user namespaces by the uid and gid that they map to the guest. Making one
// takes half a millisecond, and most mounts of a jail have the same owner.
type idMaps map[[2]int]*os.File

func (maps idMaps) get(uid, gid, firstID int) (*os.File, error) {
	owner := [2]int{uid, gid}
	if maps[owner] == nil {
		f, err := newIDMap(swapIDs(uid, GuestUID, firstID), swapIDs(gid, GuestGID, firstID))
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

// swapIDs maps file system ids to a jail's ids: the owner's to the guest's, the guest's, if
// different, to the owner's, and all others to the same number.
func swapIDs(owner, guest, firstID int) []syscall.SysProcIDMap {
	list := []syscall.SysProcIDMap{{ContainerID: owner, HostID: firstID + guest, Size: 1}}
	if owner != guest && owner < IDsPerJail {
		list = append(list, syscall.SysProcIDMap{ContainerID: guest, HostID: firstID + owner, Size: 1})
	}
	from := 0
	for _, mapped := range []int{min(owner, guest), max(owner, guest), IDsPerJail} {
		if to := min(mapped, IDsPerJail); to > from {
			list = append(list, syscall.SysProcIDMap{ContainerID: from, HostID: firstID + from, Size: to - from})
		}
		from = mapped + 1
	}
	return list
}

// newIDMap makes a user namespace that serves as an id map only.
func newIDMap(users, groups []syscall.SysProcIDMap) (f *os.File, err error) {
	f, err = makeUserNamespace(users, groups)
	if errors.Is(err, unix.EPERM) { // in a chroot
		err = OutsideChroot(func() (err error) {
			f, err = makeUserNamespace(users, groups)
			return err
		})
	}
	return f, err
}

// makeUserNamespace makes a process in a new user namespace, which exits immediately. Until it
// is reaped, the kernel keeps its credentials, and so the namespace. Starting a program
// would take ten times as long, and it could outlive a host that is killed.
func makeUserNamespace(users, groups []syscall.SysProcIDMap) (*os.File, error) {
	pid := int(C.end_in_user_namespace())
	if pid < 0 {
		return nil, fmt.Errorf("make id map: %w", os.NewSyscallError("clone", unix.Errno(-pid)))
	}
	// The process is cloned without an exit signal: a wait for any child does not return it.
	defer func() { _, _ = unix.Wait4(pid, nil, unix.WALL, nil) }()
	if err := WriteIDMaps(pid, users, groups); err != nil {
		return nil, fmt.Errorf("make id map: %w", err)
	}
	return kernfile.Open("/proc/"+strconv.Itoa(pid)+"/ns/user", unix.O_RDONLY)
}

// AllIDs maps all ids of a jail.
func AllIDs(firstID int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: 0, HostID: firstID, Size: IDsPerJail}}
}

// WriteIDMaps sets the ids of a process's user namespace.
func WriteIDMaps(pid int, users, groups []syscall.SysProcIDMap) error {
	proc := "/proc/" + strconv.Itoa(pid)
	return errors.Join(writeIDMap(proc+"/uid_map", users), writeIDMap(proc+"/gid_map", groups))
}

func writeIDMap(path string, ids []syscall.SysProcIDMap) error {
	var text []byte
	for _, m := range ids {
		text = fmt.Appendf(text, "%d %d %d\n", m.ContainerID, m.HostID, m.Size)
	}
	return kernfile.WriteFile(path, string(text))
}
