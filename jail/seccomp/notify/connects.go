package notify

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// HandleConnects registers a function that decides about the connects that a refusal with
// the label matches. Serve does not report them. A connect to an IP address gets the errno of
// the refusal if allow returns false. The kernel executes all others.
//
// The address can be another one by the time that the kernel reads it. So allow gives
// programs a clear error, and protects nothing: the connections must be checked elsewhere.
//
// Call HandleConnects before Serve.
func (l *Listener) HandleConnects(label string, allow func(to netip.AddrPort) bool) {
	l.connectLabel, l.connect = label, allow
}

func (l *Listener) replyConnect(n *notification, c Call) error {
	to, ok := readAddress(c.PID, c.Args[1], c.Args[2])
	if !l.isBlocked(n) {
		return nil // the address may be another process's
	}
	if ok && !l.connect(to) {
		return l.refuse(n, c.Errno)
	}
	return l.permit(n)
}

// readAddress reads the IP address in a struct sockaddr of another process.
func readAddress(pid int, address, size uint64) (to netip.AddrPort, ok bool) {
	var text [unix.SizeofSockaddrInet6]byte
	want := min(size&0xffff_ffff, unix.SizeofSockaddrInet6) // an int
	if want < unix.SizeofSockaddrInet4 {
		return to, false
	}
	local := []unix.Iovec{{Base: &text[0], Len: want}}
	remote := []unix.RemoteIovec{{Base: uintptr(address), Len: int(want)}}
	if n, err := unix.ProcessVMReadv(pid, local, remote, 0); err != nil || n < int(want) {
		return to, false
	}
	port := binary.BigEndian.Uint16(text[2:])
	switch family := binary.NativeEndian.Uint16(text[:]); {
	case family == unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(text[4:])), port), true
	case family == unix.AF_INET6 && want == unix.SizeofSockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(text[8:])).Unmap(), port), true
	}
	return to, false
}
