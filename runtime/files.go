package runtime

import (
	"errors"

	"gaol/jail"
	"gaol/vfs/hostfs"
)

// FS gives the files of the sandbox to the host, while guests run or not. Operations see
// what a run sees: links lead where they lead a guest, places that permissions hide,
// or hold by mounts, are hidden and held for the host too. They have the rights of the
// guest's user, whom new files belong to, and not those of a run's other permissions.
// What they write counts against Limits.Disk and Inodes.
//
// Once the runtime is closed they fail with [ErrClosed], and files that are open do.
func (rt *NodeRuntime) FS() *hostfs.FS { return rt.files }

func openFiles(j *jail.Jail) (*hostfs.FS, error) {
	root, err := j.Root()
	if err != nil {
		return nil, err
	}
	first, count := j.HostIDs()
	files, err := hostfs.New(root, hostfs.Options{
		UID: first + jail.GuestUID, GID: first + jail.GuestGID,
		IDs:    hostfs.IDs{First: uint32(first), Count: uint32(count)},
		Closed: ErrClosed,
	})
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return files, nil
}
