package kernfile

import (
	"errors"
	"io"
	"net"
	"os"
	goruntime "runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open is [os.OpenFile] without the poller, for files that exist. The file is closed on exec.
func Open(path string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), path), nil
		case unix.EINTR:
		default:
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// ReadFile reads a whole file.
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// WriteFile replaces the content of an existing file. It does not create one: on a cgroup
// mount that fails with "permission denied" instead of "no such file".
func WriteFile(path, text string) error {
	f, err := Open(path, unix.O_WRONLY|unix.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Control calls f with a descriptor, which is not closed meanwhile. It returns [os.ErrClosed] if it was closed before.
func Control(c syscall.Conn, f func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if raw.Control(func(fd uintptr) { failed = f(int(fd)) }) != nil {
		return os.ErrClosed
	}
	return failed
}

// Duplicate returns a copy of a descriptor, which the caller closes. It is closed on exec.
func Duplicate(c syscall.Conn) (own int, err error) {
	err = Control(c, func(fd int) (err error) {
		own, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return os.NewSyscallError("fcntl", err)
	})
	return own, err
}

// Poll waits for events of a descriptor, see poll(2), at most for a number of milliseconds. A negative number is no limit.
// It returns the events, or 0 if there are none.
func Poll(fd int, events int16, timeout int) (int16, error) {
	for {
		list := []unix.PollFd{{Fd: int32(fd), Events: events}}
		if _, err := unix.Poll(list, timeout); err != unix.EINTR {
			return list[0].Revents, os.NewSyscallError("poll", err)
		}
	}
}

// OnThread calls f on a new thread that ends afterwards: it may enter namespaces and give up rights.
func OnThread(f func() error) error { return StartOnThread(f, func() {}) }

// StartOnThread is OnThread for a thread that lives until rest returns, which it calls after f, unless
// that fails: the kernel ends processes with the thread that has started them, if they ask for it.
func StartOnThread(f func() error, rest func()) error {
	started := make(chan error)
	go func() {
		goruntime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := f()
		started <- err
		if err == nil {
			rest()
		}
	}()
	return <-started
}

// InNetwork is OnThread in a network namespace: a file of /proc/PID/ns, or a pidfd of a process in it.
func InNetwork(of *os.File, f func() error) error {
	return OnThread(func() error {
		err := Control(of, func(fd int) error { return os.NewSyscallError("setns", unix.Setns(fd, unix.CLONE_NEWNET)) })
		if err != nil {
			return err
		}
		return f()
	})
}

// DropCapabilities drops the effective, permitted and inheritable capabilities of this thread.
//
// Preconditions: the thread is locked to its goroutine and ends with it, or all of its process may lose them.
func DropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return os.NewSyscallError("capset", unix.Capset(&header, &none[0]))
}

// SetFileIDs sets the user and group of this thread for access to files, and returns the former ones. While the user is
// not 0, the kernel removes the capabilities over files from the effective ones; user 0 restores them (capabilities(7)).
// An error is no reason not to set the former ones again: one of the ids may have changed.
//
// Preconditions: the thread is locked to its goroutine.
func SetFileIDs(uid, gid int) (oldUID, oldGID int, err error) {
	oldGID, _ = unix.SetfsgidRetGid(gid) // which reports no errors
	oldUID, _ = unix.SetfsuidRetUid(uid)
	nowGID, _ := unix.SetfsgidRetGid(-1) // -1 is not an id, and changes nothing
	nowUID, _ := unix.SetfsuidRetUid(-1)
	if nowUID == uid && nowGID == gid {
		return oldUID, oldGID, nil
	}
	return setEffectiveIDs(uid, gid)
}

// setEffectiveIDs is SetFileIDs for kernels that follow the effective ids only, such as gVisor's. The real and saved ones stay: other
// processes of the user can neither signal nor trace this one.
func setEffectiveIDs(uid, gid int) (oldUID, oldGID int, err error) {
	const same = ^uintptr(0)
	oldUID, oldGID = unix.Geteuid(), unix.Getegid()
	for _, set := range []struct {
		call uintptr
		id   int
	}{{unix.SYS_SETRESGID, gid}, {unix.SYS_SETRESUID, uid}} {
		if _, _, errno := unix.RawSyscall(set.call, same, uintptr(set.id), same); errno != 0 {
			return oldUID, oldGID, os.NewSyscallError("setresuid", errno)
		}
	}
	return oldUID, oldGID, nil
}

// Openat2 opens a path relative to dir, as the kernel resolves it by RESOLVE_* flags. Its error is an errno.
func Openat2(dir *os.File, path string, flags, resolve uint64) (*os.File, error) {
	fd, err := Openat2FD(int(dir.Fd()), path, flags, resolve)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Openat2FD is Openat2 for descriptors.
func Openat2FD(dir int, path string, flags, resolve uint64) (int, error) {
	const retries = 100 // renames and mounts anywhere can make the kernel unsure about a ".." (EAGAIN)
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve}
	for i := 0; ; i++ {
		if fd, err := unix.Openat2(dir, path, &how); i == retries || err != unix.EAGAIN && err != unix.EINTR {
			return fd, err
		}
	}
}

// Once returns a function that calls f, which reads something that does not change, until f succeeds, and
// returns that result from then on. Unlike [sync.OnceValues] it does not keep errors, because they may be
// temporary: a process that has run out of descriptors may close some. It is safe for concurrent use.
func Once[T any](f func() (T, error)) func() (T, error) {
	var mu sync.Mutex
	var value T
	done := false
	return func() (T, error) {
		mu.Lock()
		defer mu.Unlock()
		if done {
			return value, nil
		}
		v, err := f()
		if err == nil {
			value, done = v, true
		}
		return v, err
	}
}

// SocketPair returns a pair of connected sockets. Reading the first does not block a
// thread; the second is for another process.
func SocketPair(kind int) (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	file := os.NewFile(uintptr(fds[0]), "socket")
	defer file.Close() // FileConn duplicates it
	other := os.NewFile(uintptr(fds[1]), "socket")
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, nil, errors.Join(err, other.Close())
	}
	return conn.(*net.UnixConn), other, nil
}

// Seal returns a memory file with some bytes, which no process can change, and only root can open anew.
func Seal(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0) // so that other runs of the runtime cannot open it through /proc
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), f.Close())
	}
	return f, nil
}
