package audit

import (
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

func parseDenial(line string) (Denial, error) {
	r, err := parseRecord(line)
	if err != nil {
		return Denial{}, err
	}
	d := Denial{Path: r["path"]}
	if name, found := r["name"]; found && d.Path == "" {
		d.Path = name
	}
	for _, part := range []func(*Denial, record) error{
		(*Denial).readDomain, (*Denial).readBlockers, (*Denial).readAddress,
	} {
		if err := part(&d, r); err != nil {
			return Denial{}, err
		}
	}
	return d, nil
}

func (d *Denial) readDomain(r record) (err error) {
	d.Domain, err = r.domainID()
	return err
}

func (d *Denial) readBlockers(r record) error {
	d.Blockers = strings.Split(r["blockers"], ",")
	if len(d.Blockers) > maxBlockers {
		return fmt.Errorf("%d blockers", len(d.Blockers))
	}
	for _, b := range d.Blockers {
		if b == "" || strings.Trim(b, "abcdefghijklmnopqrstuvwxyz_.") != "" {
			return fmt.Errorf("blocker %q", b)
		}
	}
	return nil
}

func (d *Denial) readAddress(r record) error {
	var addr netip.Addr
	var port uint64
	var err error
	if value, found := r["daddr"]; found {
		if addr, err = netip.ParseAddr(value); err != nil {
			return err
		}
	}
	if _, found := r["dest"]; found {
		port, err = r.number("dest", 10, 16)
	}
	d.Address = netip.AddrPortFrom(addr, uint16(port))
	return err
}

// domain is the record of a domain, which the kernel sends at its first denial and at its
// end.
type domain struct {
	id    uint64
	ended bool
	pid   int // of the process that enforced it; 0 if it ended
}

func parseDomain(line string) (domain, error) {
	r, err := parseRecord(line)
	if err != nil {
		return domain{}, err
	}
	d := domain{}
	if d.id, err = r.domainID(); err != nil {
		return domain{}, err
	}
	switch status := r["status"]; status {
	case "deallocated":
		d.ended = true
		return d, nil
	case "allocated":
	default:
		return domain{}, fmt.Errorf("status %q", status)
	}
	pid, err := r.number("pid", 10, 31)
	if err != nil || pid == 0 {
		return domain{}, fmt.Errorf("pid %q", r["pid"])
	}
	d.pid = int(pid)
	return d, nil
}
