package audit

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Limits of a record. A path has at most 4096 bytes, which are 8192 in hex.
const (
	maxRecord = 16 << 10
	maxFields = 32
)

// record maps the fields of a record to their decoded values:
// "audit(SECONDS.MILLIS:SERIAL): key=value ...".
type record map[string]string

// text are the keys whose values the kernel quotes, or writes in hex if they contain a
// quote, a blank or a non-ASCII character. Only these can contain text that a guest chose.
// So a blank always ends a value, and a guest can't forge a key.
var text = map[string]bool{"path": true, "name": true, "dev": true, "exe": true, "comm": true, "ocomm": true}

// parseRecord parses a record of Landlock. All have the number of a domain.
func parseRecord(line string) (r record, domain uint64, err error) {
	if len(line) > maxRecord {
		return nil, 0, fmt.Errorf("%d bytes, at most %d are allowed", len(line), maxRecord)
	}
	stamp, rest, found := strings.Cut(line, ": ")
	if !found || !strings.HasPrefix(stamp, "audit(") || !strings.HasSuffix(stamp, ")") {
		return nil, 0, errors.New("no stamp")
	}
	words := strings.Split(rest, " ")
	if len(words) > maxFields {
		return nil, 0, fmt.Errorf("%d fields, at most %d are allowed", len(words), maxFields)
	}
	r = make(record, len(words))
	for _, word := range words {
		if err := r.add(word); err != nil {
			return nil, 0, err
		}
	}
	domain, err = r.number("domain", 16, 64)
	return r, domain, err
}

// add adds a field. It rejects duplicates, as one of them might be forged.
func (r record) add(word string) error {
	key, value, found := strings.Cut(word, "=")
	if !found || key == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return fmt.Errorf("field %q", word)
	}
	if _, twice := r[key]; twice {
		return fmt.Errorf("duplicate field %s", key)
	}
	var err error
	if text[key] {
		value, err = parseText(value)
	} else if !isPlain(value) {
		err = fmt.Errorf("value %q", value)
	}
	if err != nil {
		return fmt.Errorf("field %s: %w", key, err)
	}
	r[key] = value
	return nil
}

func parseText(value string) (string, error) {
	if inner, quoted := strings.CutPrefix(value, `"`); quoted {
		inner, closed := strings.CutSuffix(inner, `"`)
		if !closed || !isPlain(inner) {
			return "", fmt.Errorf("text %q", value)
		}
		return inner, nil
	}
	decoded, err := hex.DecodeString(value)
	if err != nil {
		return "", fmt.Errorf("hex: %w", err)
	}
	return string(decoded), nil
}

// isPlain reports whether the kernel writes s without hex.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || c == '"' {
			return false
		}
	}
	return true
}

// number parses a mandatory field.
func (r record) number(key string, base, bits int) (uint64, error) {
	value, found := r[key]
	if !found {
		return 0, fmt.Errorf("no field %s", key)
	}
	n, err := strconv.ParseUint(value, base, bits)
	if err != nil {
		return 0, fmt.Errorf("field %s: %w", key, err)
	}
	return n, nil
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
