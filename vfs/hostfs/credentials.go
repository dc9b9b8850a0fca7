package hostfs

import (
	"os"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// credentials are the user and group that the kernel uses for file access.
type credentials struct {
	uid, gid int
	own      bool // they are the process's own ids and need no switch
}

func credentialsOf(uid, gid int) credentials {
	return credentials{uid, gid, uid == os.Geteuid() && gid == os.Getegid()}
}

// act calls do with the credentials on its thread, without the process's supplementary
// groups. While the fsuid is not 0, the kernel removes the capabilities over files from the
// effective set (capabilities(7)).
func (i credentials) act(do func() error) error {
	if i.own {
		return do()
	}
	goruntime.LockOSThread() // these ids are per thread
	defer goruntime.UnlockOSThread()
	groups, err := unix.Getgroups()
	if err != nil {
		return err
	}
	// Not the standard library's Setgroups, which changes all threads.
	if err := unix.Setgroups(nil); err != nil {
		return errCredentials
	}
	gid, uid := setIDs(i.gid, i.uid)
	defer func() {
		setIDs(gid, uid)
		if g, u := currentIDs(); g != gid || u != uid || unix.Setgroups(groups) != nil {
			panic("hostfs: cannot restore the host's credentials") // other goroutines will run on this thread
		}
	}()
	if g, u := currentIDs(); g != i.gid || u != i.uid {
		return errCredentials
	}
	return do()
}

// setIDs sets the thread's fsgid and fsuid, and returns the previous ones.
func setIDs(gid, uid int) (oldGID, oldUID int) {
	oldGID, _ = unix.SetfsgidRetGid(gid) // callers check the result with currentIDs
	oldUID, _ = unix.SetfsuidRetUid(uid)
	return oldGID, oldUID
}

func currentIDs() (gid, uid int) { return setIDs(-1, -1) } // -1 is invalid and changes nothing
