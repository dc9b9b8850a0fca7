package jail

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// measureSockets kills the runs of each jail whose sockets hold too much beyond what the
// runs are charged for. Runs of a jail share its sockets: what is queued for one may be
// another's, and nobody's before it is accepted.
func (w *memoryWatch) measureSockets() {
	for j, runs := range w.byNetwork() {
		held, err := j.socketMemory()
		if err != nil {
			continue // the jail is being closed, or the kernel has no such list
		}
		for _, p := range runs {
			charged, err := p.group.SocketMemory()
			if err != nil {
				charged = p.limits.Memory // it has ended
			}
			held -= charged
		}
		if held < maxSocketMemory {
			continue
		}
		for _, p := range runs {
			p.killForMemory()
		}
	}
}

// socketMemory adds up what all TCP and UDP sockets in the jail's network namespace hold,
// those included that no process has.
func (j *Jail) socketMemory() (held int64, err error) {
	f, err := j.netlinkSocket(unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		for _, protocol := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			n, err := dumpSockets(f, family, protocol)
			if err != nil {
				return 0, err
			}
			held += n
		}
	}
	return held, nil
}

// See sock_diag(7) and linux/inet_diag.h.
const (
	sockDiagByFamily = 20
	diagRequestLen   = 56 // struct inet_diag_req_v2
	diagMessageLen   = 72 // struct inet_diag_msg
	diagMemory       = 7  // INET_DIAG_SKMEMINFO: numbers of 32 bits
)

func dumpSockets(f *os.File, family, protocol byte) (held int64, err error) {
	request := make([]byte, unix.SizeofNlMsghdr+diagRequestLen)
	binary.NativeEndian.PutUint32(request, uint32(len(request)))
	binary.NativeEndian.PutUint16(request[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	body := request[unix.SizeofNlMsghdr:]
	body[0], body[1], body[2] = family, protocol, 1<<(diagMemory-1)
	binary.NativeEndian.PutUint32(body[4:], 0xffff_ffff) // in all states
	fd := int(f.Fd())
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, answer, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, os.NewSyscallError("recvfrom", err)
		}
		more, done, err := parseSockets(answer[:n], protocol)
		held += more
		if done || err != nil {
			return held, err
		}
	}
}

// parseSockets adds up what the sockets of a part of the kernel's answer hold. It reports
// whether that was the last part.
func parseSockets(part []byte, protocol byte) (held int64, done bool, err error) {
	for len(part) >= unix.SizeofNlMsghdr {
		size := int(binary.NativeEndian.Uint32(part))
		kind := binary.NativeEndian.Uint16(part[4:])
		if size < unix.SizeofNlMsghdr || size > len(part) {
			return held, true, unix.EBADMSG
		}
		body := part[unix.SizeofNlMsghdr:size]
		part = part[min(len(part), align4(size)):]
		switch {
		case kind == unix.NLMSG_DONE:
			return held, true, nil
		case kind == unix.NLMSG_ERROR && len(body) >= 4:
			return held, true, unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
		case kind == sockDiagByFamily && len(body) >= diagMessageLen:
			held += socketHolds(body[diagMessageLen:], protocol)
		}
	}
	return held, false, nil
}

// socketHolds reads the memory of one socket from its attributes.
func socketHolds(attributes []byte, protocol byte) int64 {
	const receive, send, forward, queued, options, backlog = 0, 2, 4, 5, 6, 7 // SK_MEMINFO_…
	for len(attributes) >= unix.SizeofRtAttr {
		size := int(binary.NativeEndian.Uint16(attributes))
		kind := binary.NativeEndian.Uint16(attributes[2:])
		if size < unix.SizeofRtAttr || size > len(attributes) {
			return 0
		}
		value := attributes[unix.SizeofRtAttr:size]
		attributes = attributes[min(len(attributes), align4(size)):]
		if kind != diagMemory || len(value) < 4*(backlog+1) {
			continue
		}
		parts := []int{receive, forward, queued, options, backlog}
		if protocol == unix.IPPROTO_UDP { // TCP counts what it sends twice
			parts = append(parts, send)
		}
		var held int64
		for _, i := range parts {
			held += int64(binary.NativeEndian.Uint32(value[4*i:]))
		}
		return held
	}
	return 0
}

func align4(n int) int { return (n + 3) &^ 3 }
