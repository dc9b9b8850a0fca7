package sockdiag

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// Listeners returns the addresses on which users listen for TCP, for kernels without this package's queries, from /proc/net. In
// gVisor these files list all network namespaces. If port is not 0, it returns only addresses with that port.
func Listeners(port uint16, isUser func(uid int) bool) (list []netip.AddrPort, err error) {
	err = eachLine("tcp", func(l line) {
		if l.state == unix.BPF_TCP_LISTEN && isUser(l.uid) && (port == 0 || l.own.Port() == port) {
			list = append(list, l.own)
		}
	})
	return list, err
}

// Inodes returns the inodes of the sockets that Listeners reads, at one end of a connection of TCP, or with a port of UDP.
func Inodes(network string, own, peer netip.AddrPort) (list []uint64, err error) {
	err = eachLine(network, func(l line) {
		if l.inode != 0 && l.own.Port() == own.Port() && (network == "udp" || l.own == own && l.peer == peer) {
			list = append(list, l.inode)
		}
	})
	return list, err
}

// line is a line of /proc/net/tcp or udp.
type line struct {
	own, peer netip.AddrPort
	state     uint64
	uid       int
	inode     uint64
}

// eachLine calls f for each line of the lists of both address families.
func eachLine(network string, f func(line)) (err error) {
	for _, path := range []string{"/proc/net/" + network, "/proc/net/" + network + "6"} {
		text, failed := kernfile.ReadFile(path)
		if failed != nil {
			err = errors.Join(err, failed)
		}
		for text := range strings.Lines(string(text)) {
			if l, ok := parseLine(strings.Fields(text)); ok {
				f(l)
			}
		}
	}
	return err
}

func parseLine(fields []string) (l line, ok bool) {
	if len(fields) < 10 {
		return l, false
	}
	var known [2]bool
	var failed [3]error
	l.own, known[0] = parseAddress(fields[1])
	l.peer, known[1] = parseAddress(fields[2])
	l.state, failed[0] = strconv.ParseUint(fields[3], 16, 8)
	l.uid, failed[1] = strconv.Atoi(fields[7])
	l.inode, failed[2] = strconv.ParseUint(fields[9], 10, 64)
	return l, known[0] && known[1] && errors.Join(failed[:]...) == nil
}

// parseAddress parses an address of /proc/net/tcp: words of 32 bits in the machine's order, and a port.
func parseAddress(text string) (a netip.AddrPort, ok bool) {
	words, number, _ := strings.Cut(text, ":")
	data, err := hex.DecodeString(words)
	port, failed := strconv.ParseUint(number, 16, 16)
	if err != nil || failed != nil || len(data)%4 != 0 {
		return a, false
	}
	for i := 0; i < len(data); i += 4 {
		binary.BigEndian.PutUint32(data[i:], binary.NativeEndian.Uint32(data[i:]))
	}
	address, ok := netip.AddrFromSlice(data)
	return netip.AddrPortFrom(address.Unmap(), uint16(port)), ok
}
