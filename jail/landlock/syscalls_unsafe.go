package landlock

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// createRuleset makes a ruleset. The kernel refuses what is not zero beyond the
// fields that it knows, and takes a longer structure otherwise.
func createRuleset(attr unix.LandlockRulesetAttr) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

func addPath(ruleset, fd int, access Access) error {
	// The kernel's structure is packed. It reads less of this one, which is padded
	// at its end.
	attr := unix.LandlockPathBeneathAttr{Allowed_access: uint64(access), Parent_fd: int32(fd)}
	return addRule(ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, unsafe.Pointer(&attr))
}

// netPort is struct landlock_net_port_attr, which package unix lacks.
type netPort struct {
	allowed uint64
	port    uint64 // in the host's byte order
}

const ruleNetPort = 2 // LANDLOCK_RULE_NET_PORT

func addPort(ruleset int, port uint16) error {
	attr := netPort{allowed: unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, port: uint64(port)}
	return addRule(ruleset, ruleNetPort, unsafe.Pointer(&attr))
}

func addRule(ruleset, kind int, attr unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), uintptr(kind), uintptr(attr), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
