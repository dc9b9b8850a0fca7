package hostfs

import (
	"os"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// identity is whom the kernel takes this process for when it looks at files.
type identity struct {
	uid, gid int
	own      bool // the process's own ids: there is nothing to change
}

func identityOf(uid, gid int) identity {
	return identity{uid, gid, uid == os.Geteuid() && gid == os.Getegid()}
}

// act calls do with the identity on its thread, without the groups of the process. With
// another fsuid than 0 the kernel takes the capabilities over files out of the effective
// ones, and gives them back with it (capabilities(7)).
func (i identity) act(do func() error) error {
	if i.own {
		return do()
	}
	goruntime.LockOSThread() // these ids are a thread's
	defer goruntime.UnlockOSThread()
	groups, err := unix.Getgroups()
	if err != nil {
		return err
	}
	// Of x/sys: the standard library's would change all threads.
	if err := unix.Setgroups(nil); err != nil {
		return errIdentity
	}
	gid, uid := setIDs(i.gid, i.uid)
	defer func() {
		setIDs(gid, uid)
		if g, u := currentIDs(); g != gid || u != uid || unix.Setgroups(groups) != nil {
			panic("hostfs: can't be the host again") // any goroutine may get this thread
		}
	}()
	if g, u := currentIDs(); g != i.gid || u != i.uid {
		return errIdentity
	}
	return do()
}

// setIDs returns the earlier ids.
func setIDs(gid, uid int) (oldGID, oldUID int) {
	oldGID, _ = unix.SetfsgidRetGid(gid) // whether it took effect is asked afterwards
	oldUID, _ = unix.SetfsuidRetUid(uid)
	return oldGID, oldUID
}

func currentIDs() (gid, uid int) { return setIDs(-1, -1) } // -1 is no id, and changes nothing
