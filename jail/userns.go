package jail

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// makeUserNamespace makes the jail's user namespace under the jail's own first
// id. Some of the kernel's counts by user (inotify's, above all) are held against
// the limits of the user who made the namespace, too: were that the host's root,
// one jail could take all that there is from the other jails and from root.
//
// Preconditions: the thread is locked to its goroutine and ends with it.
func makeUserNamespace(firstID int) (*os.File, error) {
	keep := ^uintptr(0)
	// Of the calling thread alone, which unix.Setresuid would not be.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(firstID), keep); errno != 0 {
		return nil, os.NewSyscallError("setresuid", errno)
	}
	defer unix.RawSyscall(unix.SYS_SETRESUID, keep, 0, keep)
	if err := raiseCapabilities(); err != nil {
		return nil, err
	}
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: firstID, Size: idsEach}}
	// Traced, it stops before its first instruction.
	p, err := os.StartProcess("/proc/self/exe", []string{"gaol-userns"}, &os.ProcAttr{
		Env: []string{},
		Sys: &syscall.SysProcAttr{
			Cloneflags:                 unix.CLONE_NEWUSER,
			UidMappings:                ids,
			GidMappings:                ids,
			GidMappingsEnableSetgroups: true,
			Ptrace:                     true,
			Pdeathsig:                  unix.SIGKILL,
		},
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = p.Kill()
		_, _ = p.Wait()
	}()
	return os.Open("/proc/" + strconv.Itoa(p.Pid) + "/ns/user")
}

// raiseCapabilities takes into effect what the thread is permitted: the change of
// its effective user id had dropped that.
func raiseCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	for i := range data {
		data[i].Effective = data[i].Permitted
	}
	return os.NewSyscallError("capset", unix.Capset(&head, &data[0]))
}
