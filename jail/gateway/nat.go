package gateway

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// natRule is a rule for outgoing connections and datagrams. The first match applies.
type natRule struct {
	host     bool         // only sockets of uid 0 of the host
	to       netip.Prefix // zero: all addresses
	protocol uint16       // 0: all
	ports    PortRange    // zero: all

	port uint16 // of localhost, to which the traffic is redirected; 0: it is accepted
}

// setNAT replaces the table nat of one address family, in the thread's network namespace.
func setNAT(family int, rules []natRule) error {
	table, err := natTable(family, rules)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was sent
	level := unix.SOL_IP
	if family == unix.AF_INET6 {
		level = unix.SOL_IPV6
	}
	const replace = 64 // IPT_SO_SET_REPLACE, which is also IP6T_SO_SET_REPLACE
	return os.NewSyscallError("setsockopt", unix.SetsockoptString(fd, level, replace, string(table)))
}

// Hooks of netfilter, of which the table has all but forward.
const (
	hookOutput = 3
	hooks      = 5
	natHooks   = 1<<0 | 1<<1 | 1<<hookOutput | 1<<4
)

// Verdicts, see linux/netfilter/x_tables.h.
const verdictAccept = -1 - 1 // -NF_ACCEPT - 1

// natTable encodes struct ipt_replace or ip6t_replace. All hooks but output accept everything.
func natTable(family int, rules []natRule) ([]byte, error) {
	head := struct {
		Name                 [32]byte
		Hooks, Entries, Size uint32
		First, Policy        [hooks]uint32 // offsets of each hook's first and last entry
		Counters             uint32        // number of entries of the next
		_                    uint64        // counters: not read
	}{Hooks: natHooks, Counters: hooks - 1}
	copy(head.Name[:], "nat")
	var entries bytes.Buffer
	add := func(r natRule) error {
		head.Entries++
		target, err := r.target(family)
		if err == nil {
			err = r.encode(&entries, family, target)
		}
		return err
	}
	for hook := range uint32(hooks) {
		if natHooks&(1<<hook) == 0 {
			continue
		}
		head.First[hook] = uint32(entries.Len())
		if hook == hookOutput {
			for _, r := range rules {
				if err := add(r); err != nil {
					return nil, err
				}
			}
		}
		head.Policy[hook] = uint32(entries.Len())
		if err := add(natRule{}); err != nil {
			return nil, err
		}
	}
	head.Entries++
	end, err := extension("ERROR", 0, [32]byte{'E', 'R', 'R', 'O', 'R'})
	if err == nil {
		err = natRule{}.encode(&entries, family, end)
	}
	if err != nil {
		return nil, err
	}
	head.Size = uint32(entries.Len())
	table, err := binary.Append(nil, binary.NativeEndian, head)
	return append(table, entries.Bytes()...), err
}

// extension encodes struct xt_entry_match or xt_entry_target, which are alike.
func extension(name string, revision byte, data any) ([]byte, error) {
	head := struct {
		Size     uint16
		Name     [29]byte
		Revision byte
	}{Revision: revision}
	copy(head.Name[:], name)
	const align = 8
	head.Size = uint16((binary.Size(head) + binary.Size(data) + align - 1) &^ (align - 1))
	text, err := binary.Append(nil, binary.NativeEndian, head)
	if err == nil {
		text, err = binary.Append(text, binary.NativeEndian, data)
	}
	return append(text, make([]byte, max(0, int(head.Size)-len(text)))...), err
}

// target encodes what happens to the traffic.
func (r natRule) target(family int) ([]byte, error) {
	port := bigEndian(r.port)
	switch {
	case r.port == 0:
		return extension("", 0, struct {
			Verdict int32
			_       [4]byte
		}{Verdict: verdictAccept})
	case family == unix.AF_INET6: // struct nf_nat_range
		return extension("REDIRECT", 0, struct {
			Flags       uint32
			_           [32]byte
			First, Last [2]byte
		}{Flags: natPorts, First: port, Last: port})
	}
	return extension("REDIRECT", 0, struct { // struct nf_nat_ipv4_multi_range_compat
		Ranges, Flags uint32
		_             [8]byte
		First, Last   [2]byte
	}{Ranges: 1, Flags: natPorts, First: port, Last: port})
}

const natPorts = 1 << 1 // NF_NAT_RANGE_PROTO_SPECIFIED

// bigEndian encodes a port.
func bigEndian(port uint16) [2]byte { return [2]byte{byte(port >> 8), byte(port)} }

// matches encodes the conditions on the owner and the port.
func (r natRule) matches() (list []byte, err error) {
	if r.ports != (PortRange{}) {
		name := "tcp"
		if r.protocol == unix.IPPROTO_UDP {
			name = "udp"
		}
		list, err = extension(name, 0, struct { // struct xt_tcp; struct xt_udp is shorter
			FirstSource, LastSource uint16
			First, Last             uint16
			_                       [2]byte
		}{LastSource: 1<<16 - 1, First: r.ports.First, Last: r.ports.Last})
		if err != nil {
			return nil, err
		}
	}
	if !r.host {
		return list, nil
	}
	const matchUID = 1                           // XT_OWNER_UID
	owner, err := extension("owner", 1, struct { // struct xt_owner_match_info
		FirstUID, LastUID, FirstGID, LastGID uint32
		Match, Invert                        byte
	}{Match: matchUID})
	return append(list, owner...), err
}

// encode appends struct ipt_entry or ip6t_entry.
func (r natRule) encode(to *bytes.Buffer, family int, target []byte) error {
	matches, err := r.matches()
	if err != nil {
		return err
	}
	size, padding := 4, 0
	if family == unix.AF_INET6 {
		size, padding = 16, 4
	}
	mask := make([]byte, size)
	for i := range max(0, r.to.Bits()) {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	address := make([]byte, size)
	if r.to.IsValid() {
		address = r.to.Masked().Addr().AsSlice()
	}
	var head bytes.Buffer
	head.Write(make([]byte, size)) // source
	head.Write(address)
	head.Write(make([]byte, size))
	head.Write(mask)
	head.Write(make([]byte, 64)) // names and masks of interfaces
	flags := []byte{0, 0}        // and inverted ones
	if family == unix.AF_INET6 {
		const hasProtocol = 1 // IP6T_F_PROTO
		flags = make([]byte, 6)
		if r.protocol != 0 {
			flags[1] = hasProtocol
		}
	}
	offset := head.Len() + 2 + len(flags) + 12 + padding + 16
	err = binary.Write(&head, binary.NativeEndian, r.protocol)
	head.Write(flags)
	if err == nil {
		err = binary.Write(&head, binary.NativeEndian, struct {
			_                uint32 // cache
			ToTarget, ToNext uint16
			_                uint32 // where from
		}{ToTarget: uint16(offset + len(matches)), ToNext: uint16(offset + len(matches) + len(target))})
	}
	head.Write(make([]byte, padding+16)) // counters
	for _, part := range [][]byte{head.Bytes(), matches, target} {
		to.Write(part)
	}
	return err
}
