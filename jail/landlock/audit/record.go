package audit

import (
	"cmp"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// record maps the fields of a record to their values, as the kernel writes them:
// "audit(SECONDS.MILLIS:SERIAL): key=value ...". A text that a guest chose is in quotes, or in hex
// if it contains a quote, a blank or a non-ASCII character. So a blank always ends a value, and a
// guest can't forge a field.
type record map[string]string

// parseRecord parses a record of Landlock. All have the number of a domain.
func parseRecord(line string) (r record, domain uint64, err error) {
	r = record{}
	for word := range strings.SplitSeq(line, " ") {
		key, value, _ := strings.Cut(word, "=")
		r[key] = value
	}
	domain, err = strconv.ParseUint(r["domain"], 16, 64)
	return r, domain, err
}

// text returns the value of a field with a text, or "" if there is none.
func (r record) text(key string) (string, error) {
	if inner, quoted := strings.CutPrefix(r[key], `"`); quoted {
		return strings.TrimSuffix(inner, `"`), nil
	}
	decoded, err := hex.DecodeString(r[key])
	return string(decoded), err
}

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

func parseDenial(line string) (d Denial, err error) {
	r, id, err := parseRecord(line)
	if err != nil {
		return Denial{}, err
	}
	d.Domain, d.Blockers = id, strings.Split(r["blockers"], ",")
	path, err := r.text("path")
	name, nameErr := r.text("name")
	d.Path = cmp.Or(path, name)
	addr, _ := netip.ParseAddr(r["daddr"]) // the fields are missing unless the operation has an address
	port, _ := strconv.ParseUint(r["dest"], 10, 16)
	d.Address = netip.AddrPortFrom(addr, uint16(port))
	return d, cmp.Or(err, nameErr)
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
	if r["status"] == "deallocated" {
		return domain{id: id, ended: true}, nil
	}
	pid, err := strconv.ParseUint(r["pid"], 10, 31)
	return domain{id: id, pid: int(pid)}, err
}
