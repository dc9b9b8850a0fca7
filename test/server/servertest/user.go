package servertest

import (
	"net"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// User is a local user.
type User struct {
	UID, GID int
	Groups   []int
}

// Dial connects to a unix socket as a user.
func Dial(socket string, user User) (c net.Conn, err error) {
	err = user.Do(func() (err error) {
		c, err = net.Dial("unix", socket)
		return err
	})
	return c, err
}

// Do calls do on a thread with the user's credentials, which ends afterwards.
func (u User) Do(do func() error) error {
	done := make(chan error)
	go func() {
		goruntime.LockOSThread() // without an unlock: the thread ends with the goroutine
		err := u.become()
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

// become changes the credentials of the calling thread only, unlike the functions of package syscall.
func (u User) become() error {
	if err := unix.Setgroups(u.Groups); err != nil {
		return err
	}
	for _, set := range [][2]uintptr{{unix.SYS_SETRESGID, uintptr(u.GID)}, {unix.SYS_SETRESUID, uintptr(u.UID)}} {
		if _, _, errno := unix.RawSyscall(set[0], set[1], set[1], set[1]); errno != 0 {
			return errno
		}
	}
	return nil
}
