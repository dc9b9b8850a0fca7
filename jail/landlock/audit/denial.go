package audit

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
)

// Denial is an operation that Landlock denied. Missing fields are zero.
type Denial struct {
	Domain uint64 // the kernel's number of the domain, unique until the next boot

	// PID is the process that enforced the domain, in the first pid namespace. The
	// operation was its own or a descendant's.
	PID int

	// Blockers are the missing rights: "fs.read_file", "fs.refer",
	// "fs.change_topology" for mounts, "net.connect_tcp", "scope.signal",
	// "ptrace".
	Blockers []string

	// Path is the file as the guest sees it, or the folder in which a file would be
	// created, removed or renamed. The guest chooses the text, which may contain control
	// characters.
	Path string

	// Address is the address to connect to. Either part may be missing.
	Address netip.AddrPort
}

const maxBlockers = 32

func parseDenial(line string) (d Denial, err error) {
	r, id, err := parseRecord(line)
	if err != nil {
		return Denial{}, err
	}
	d.Domain, d.Path = id, cmp.Or(r["path"], r["name"])
	if d.Blockers, err = parseBlockers(r["blockers"]); err != nil {
		return Denial{}, err
	}
	d.Address, err = r.address()
	return d, err
}

func parseBlockers(list string) ([]string, error) {
	blockers := strings.Split(list, ",")
	if len(blockers) > maxBlockers {
		return nil, fmt.Errorf("%d blockers", len(blockers))
	}
	for _, b := range blockers {
		if b == "" || strings.Trim(b, "abcdefghijklmnopqrstuvwxyz_.") != "" {
			return nil, fmt.Errorf("blocker %q", b)
		}
	}
	return blockers, nil
}

func (r record) address() (netip.AddrPort, error) {
	var addr netip.Addr
	var port uint64
	var err error
	if value, found := r["daddr"]; found {
		if addr, err = netip.ParseAddr(value); err != nil {
			return netip.AddrPort{}, err
		}
	}
	if _, found := r["dest"]; found {
		port, err = r.number("dest", 10, 16)
	}
	return netip.AddrPortFrom(addr, uint16(port)), err
}

// domain is the record of a domain, which the kernel sends at its first denial and at its
// end.
type domain struct {
	id    uint64
	ended bool
	pid   int // of the process that enforced it; 0 if it ended
}

func parseDomain(line string) (d domain, err error) {
	r, id, err := parseRecord(line)
	if err != nil {
		return domain{}, err
	}
	d.id = id
	switch status := r["status"]; status {
	case "deallocated":
		d.ended = true
		return d, nil
	case "allocated":
		pid, err := r.number("pid", 10, 31)
		if err != nil || pid == 0 {
			return domain{}, fmt.Errorf("pid %q", r["pid"])
		}
		d.pid = int(pid)
		return d, nil
	default:
		return domain{}, fmt.Errorf("status %q", status)
	}
}
