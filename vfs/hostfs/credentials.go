package hostfs

import (
	"os"
	goruntime "runtime"

	"gaol/internal/kernfile"

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

// act calls do with the credentials on its thread, without the process's supplementary groups.
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
	uid, gid, err := kernfile.SetFileIDs(i.uid, i.gid)
	defer func() {
		if _, _, err := kernfile.SetFileIDs(uid, gid); err != nil || unix.Setgroups(groups) != nil {
			panic("hostfs: cannot restore the host's credentials") // other goroutines will run on this thread
		}
	}()
	if err != nil {
		return errCredentials
	}
	return do()
}
