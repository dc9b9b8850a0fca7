package hostfs

import "golang.org/x/sys/unix"

// host is this process itself.
var host = identity{own: true}

// reader is whom a walk reads as: the guest, or with owned the host where the guest is
// the owner. An owner can give itself the right to read, so that this shows nothing that
// the guest could not have shown. What has other owners is read as the guest then, too.
type reader struct {
	fs    *FS
	owned bool
}

// step is FS.step, as the host with owned. Then do opens entries with [child] alone, in
// folders that list has opened, and reads by way of as.
func (r reader) step(op, path string, do func() error) error {
	who := r.fs.who
	if r.owned {
		who = host
	}
	return r.fs.stepAs(who, op, path, func(int) error { return do() })
}

// as calls do, in a step, as the one who may read the node.
func (r reader) as(n *node, do func() error) error {
	if !r.owned || int(n.stat.Uid) == r.fs.who.uid {
		return do()
	}
	return r.fs.who.act(do)
}

// list opens a folder, in a step, and lists it. The descriptor is the caller's, also if
// there is an error.
func (r reader) list(n *node, limit int) (fd int, inside []*Info, err error) {
	fd = -1
	err = r.as(n, func() (err error) {
		if fd, err = n.reopen(unix.O_RDONLY | unix.O_DIRECTORY); err != nil {
			return err
		}
		if r.owned { // what is in it will be opened as the host: the right to look into it is asked for here
			if _, err := statAt(fd, "."); err != nil {
				return err
			}
		}
		inside, err = r.fs.entries(fd, limit)
		return err
	})
	return fd, inside, err
}
