package sockdiag

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// Listeners returns the addresses on which users listen for TCP, for kernels without this package's queries, from /proc/net. In
// gVisor these files list all network namespaces. If port is not 0, it returns only addresses with that port.
func Listeners(port uint16, isUser func(uid int) bool) (list []netip.AddrPort, err error) {
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, failed := kernfile.ReadFile(path)
		if failed != nil {
			err = errors.Join(err, failed)
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 8 || f[3] != fmt.Sprintf("%02X", unix.BPF_TCP_LISTEN) {
				continue
			}
			own, known := parseAddress(f[1])
			uid, failed := strconv.Atoi(f[7])
			if known && failed == nil && isUser(uid) && (port == 0 || own.Port() == port) {
				list = append(list, own)
			}
		}
	}
	return list, err
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
