package audit

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Denial is something that a program tried and that Landlock denied. What it doesn't
// tell is zero.
type Denial struct {
	Time   time.Time // in milliseconds
	Domain uint64    // the kernel's number of the domain; none comes twice until the next boot

	// PID is the process that put the domain on, in the first pid namespace. The one
	// that was denied is it or a descendant.
	PID int

	// Blockers are what would have had to be granted: "fs.read_file", "fs.refer",
	// "fs.change_topology" for mounts, "net.connect_tcp", "scope.signal",
	// "scope.abstract_unix_socket", "ptrace".
	Blockers []string

	// Path is the file, as the program that was denied sees it; for what would
	// be made, removed or renamed, it is the folder. It is whatever the guest chose,
	// control characters included. For an abstract socket it begins with "@".
	Path string

	// Address is where a socket should have connected to, or else be bound to. Address
	// or port may be missing.
	Address netip.AddrPort

	// Target is the process that should have got a signal or be traced.
	Target int
}

const maxBlockers = 32

func parseDenial(line string) (Denial, error) {
	r, err := parseRecord(line)
	if err != nil {
		return Denial{}, err
	}
	d := Denial{Time: r.time, Path: r.fields["path"]}
	if name, found := r.fields["name"]; found && d.Path == "" {
		d.Path = name
	}
	for _, part := range []func(*Denial, *record) error{
		(*Denial).readDomain, (*Denial).readBlockers, (*Denial).readAddress, (*Denial).readTarget,
	} {
		if err := part(&d, &r); err != nil {
			return Denial{}, err
		}
	}
	if strings.HasPrefix(d.Path, "\x00") && d.Blockers[0] == "scope.abstract_unix_socket" {
		d.Path = "@" + d.Path[1:]
	}
	return d, nil
}

func (d *Denial) readDomain(r *record) (err error) {
	d.Domain, err = r.domainID()
	return err
}

func (d *Denial) readBlockers(r *record) error {
	d.Blockers = strings.Split(r.fields["blockers"], ",")
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

// readAddress prefers where a connection goes to where it comes from.
func (d *Denial) readAddress(r *record) error {
	for _, keys := range [][2]string{{"daddr", "dest"}, {"saddr", "src"}} {
		var addr netip.Addr
		var port uint64
		var err error
		if value, found := r.fields[keys[0]]; found {
			if addr, err = netip.ParseAddr(value); err != nil {
				return err
			}
		}
		if _, found := r.fields[keys[1]]; found {
			if port, err = r.number(keys[1], 10, 16); err != nil {
				return err
			}
		}
		d.Address = netip.AddrPortFrom(addr, uint16(port))
		if addr.IsValid() || port != 0 {
			return nil
		}
	}
	return nil
}

func (d *Denial) readTarget(r *record) error {
	if _, found := r.fields["opid"]; !found {
		return nil
	}
	pid, err := r.number("opid", 10, 31)
	d.Target = int(pid)
	return err
}

// domain is what the kernel tells of one: at its first denial, and at its end.
type domain struct {
	id    uint64
	ended bool
	pid   int // of who put it on; 0 for one that ended
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
	switch status := r.fields["status"]; status {
	case "deallocated":
		d.ended = true
		return d, nil
	case "allocated":
	default:
		return domain{}, fmt.Errorf("status %q", status)
	}
	pid, err := r.number("pid", 10, 31)
	if err != nil || pid == 0 {
		return domain{}, fmt.Errorf("pid %q", r.fields["pid"])
	}
	d.pid = int(pid)
	return d, nil
}
