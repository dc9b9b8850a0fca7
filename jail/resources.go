package jail

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/jail/sockdiag"
	"gaol/jail/step"
)

// Resources counts the kernel objects of a jail's runs.
type Resources struct {
	Processes   int
	Descriptors int // of all processes together
	Sockets     int // that a process has open
	Pipes       int // without a name
	Terminals   int

	Listeners   int // TCP sockets that listen
	Connections int // TCP sockets that are connected; two for a connection inside the jail

	Memory int64 // bytes that are charged to the runs' cgroups
	Disk   int64 // bytes in the writable layer
	Inodes int64 // files and folders in the writable layer

	// Truncated reports that a limit ended the count of descriptors, sockets, pipes and terminals.
	Truncated bool
}

// maxDescriptors bounds the descriptors that Resources looks at. Each takes a system call.
const maxDescriptors = 16_384

// Resources counts the kernel objects of the jail's runs. The guest may change them meanwhile.
//
// Preconditions: the jail is closed after Resources has returned.
func (j *Jail) Resources(ctx context.Context) (Resources, error) {
	c := resourceCount{seen: map[string]struct{}{}}
	c.firstID, c.ids = j.HostIDs()
	for _, p := range j.liveRuns() {
		if !p.runs.Load() {
			continue // it waits for a program
		}
		usage, err := p.usage()
		if err != nil {
			continue // it has ended
		}
		c.Memory += usage.Memory
		pids, _ := p.group.PIDs() // fails for a run that has ended
		for _, pid := range pids {
			if err := context.Cause(ctx); err != nil {
				return Resources{}, err
			}
			c.addProcess(pid)
		}
	}
	err := errors.Join(c.addDisk(j), c.addTCP(j))
	return c.Resources, err
}

// liveRuns returns the processes that have not ended.
func (j *Jail) liveRuns() (list []*Process) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for p := range j.live {
		list = append(list, p)
	}
	return list
}

// resourceCount is a count in progress.
type resourceCount struct {
	Resources
	firstID, ids int
	seen         map[string]struct{} // sockets, pipes and terminals
}

// addProcess adds a process and its descriptors.
func (c *resourceCount) addProcess(pid int) {
	info, err := os.Stat("/proc/" + strconv.Itoa(pid)) // with the user of the process, see proc(5)
	if err != nil {
		return // it has ended
	}
	if uid := int(info.Sys().(*syscall.Stat_t).Uid); uid < c.firstID || uid >= c.firstID+c.ids {
		return // it has ended, and a process outside the jail has its pid
	}
	c.Processes++
	for _, file := range descriptors(pid) {
		if c.Descriptors >= maxDescriptors {
			c.Truncated = true
			return
		}
		c.Descriptors++
		if target, err := os.Readlink(file); err == nil { // neither opens nor waits for the file
			c.addObject(target)
		}
	}
}

// addObject adds the object of a descriptor, unless it was seen before.
func (c *resourceCount) addObject(link string) {
	var count *int
	switch {
	case strings.HasPrefix(link, "socket:["): // paths begin with a slash
		count = &c.Sockets
	case strings.HasPrefix(link, "pipe:["):
		count = &c.Pipes
	case strings.HasPrefix(link, "/dev/pts/") && link != "/dev/pts/ptmx": // the other end of a terminal
		count = &c.Terminals
	default:
		return
	}
	if _, seen := c.seen[link]; !seen {
		c.seen[link] = struct{}{}
		*count++
	}
}

// addDisk adds the content of the writable layer: the part of the guest's limits that is not
// free.
func (c *resourceCount) addDisk(j *Jail) error {
	root, err := j.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(root.Fd()), &s); err != nil {
		return step.Wrap("read", "disk usage", os.NewSyscallError("fstatfs", err))
	}
	c.Disk, c.Inodes = max(0, j.spec.Disk-int64(s.Bfree)*s.Bsize), max(0, j.spec.Inodes-int64(s.Ffree))
	return nil
}

// addTCP adds the TCP sockets of guests.
func (c *resourceCount) addTCP(j *Jail) error {
	if !j.spec.Loopback {
		return nil
	}
	return j.eachTCP(0, 1<<unix.BPF_TCP_LISTEN|1<<unix.BPF_TCP_ESTABLISHED, func(s sockdiag.Socket) {
		if s.State() == unix.BPF_TCP_LISTEN {
			c.Listeners++
		} else {
			c.Connections++
		}
	})
}
