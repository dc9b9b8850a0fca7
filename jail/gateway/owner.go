package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/sockdiag"
)

// ownerByFiles is [Gateway.Owner] for kernels that do not report the cgroup of a socket: it returns the cgroup of all processes that
// have the socket, which /proc lists.
func ownerByFiles(network string, guest, to netip.AddrPort) (cgroup uint64, err error) {
	inodes, err := sockdiag.Inodes(network, guest, to)
	if err != nil {
		return 0, err
	}
	if len(inodes) == 0 || network != "udp" && len(inodes) > 1 {
		return 0, ErrNoOwner
	}
	var links []string
	for _, n := range inodes {
		links = append(links, "socket:["+strconv.FormatUint(n, 10)+"]")
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() || !hasFile(pid, links) {
			continue
		}
		switch id, err := cgroupOf(pid); {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ESRCH): // the process has ended
		case err != nil:
			return 0, err
		case cgroup != 0 && id != cgroup:
			return 0, ErrNoOwner
		default:
			cgroup = id
		}
	}
	if cgroup == 0 {
		return 0, ErrNoOwner
	}
	return cgroup, nil
}

// hasFile reports whether a process has an open file whose link in /proc/PID/fd is in links. An exiting process has none.
func hasFile(pid int, links []string) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		link, err := os.Readlink(filepath.Join(dir, name))
		return err == nil && slices.Contains(links, link)
	})
}

// cgroupMount is where the v2 hierarchy is mounted.
const cgroupMount = "/sys/fs/cgroup"

// cgroupOf returns the id of a process's v2 cgroup.
func cgroupOf(pid int) (id uint64, err error) {
	text, err := kernfile.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		if path, ok := strings.CutPrefix(lines.Text(), "0::/"); ok {
			var info unix.Stat_t
			dir := filepath.Join(cgroupMount, path)
			if err := unix.Stat(dir, &info); err != nil {
				return 0, &os.PathError{Op: "stat", Path: dir, Err: err}
			}
			return info.Ino, nil
		}
	}
	return 0, errors.Join(ErrNoOwner, lines.Err())
}
