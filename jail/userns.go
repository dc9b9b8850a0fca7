package jail

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/jail/enter"
)

// makeUserNamespace makes the jail's user namespace under the jail's own first
// id. Some of the kernel's counts by user (inotify's, above all) are held against
// the limits of the user who made the namespace, too: were that the host's root,
// one jail could take all that there is from the other jails and from root.
//
// Preconditions: the thread is locked to its goroutine and ends with it; stage has
// run on it.
func makeUserNamespace(firstID int) (ns *os.File, err error) {
	// The kernel lets nobody inspect a process that has changed its user, and
	// writes no core of it. The host program shall stay as it was.
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		return nil, os.NewSyscallError("prctl", err)
	}
	if err := setThreadEUID(firstID); err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, setThreadEUID(0))
		if dumpable == 1 {
			err = errors.Join(err, os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)))
		}
		if err != nil && ns != nil {
			ns.Close()
			ns = nil
		}
	}()
	if err := raiseCapabilities(); err != nil {
		return nil, err
	}
	return userNamespaceOfChild(firstID)
}

// setThreadEUID is setresuid(-1, id, -1) of the calling thread alone, which
// unix.Setresuid would not be.
func setThreadEUID(id int) error {
	keep := ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(id), keep); errno != 0 {
		return os.NewSyscallError("setresuid", errno)
	}
	return nil
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

// userNamespaceOfChild starts a process in a new namespace, which lasts as long
// as the file that it is returned as. Traced, the process stops before its first
// instruction. The program is one that the new user surely may execute.
func userNamespaceOfChild(firstID int) (*os.File, error) {
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: firstID, Size: idsEach}}
	program := filepath.Join(stageImage, enter.Path)
	p, err := os.StartProcess(program, []string{program}, &os.ProcAttr{
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
