package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"
)

// Compile gives the filter for this machine's architecture: an array of struct
// sock_filter in the machine's byte order. It is made the first time and kept, and
// not to be changed.
func Compile() ([]byte, error) { return compiled() }

var compiled = sync.OnceValues(func() ([]byte, error) {
	m, err := nativeMachine()
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	p, err := compile(m, Allowed, Denied)
	if err != nil {
		return nil, fmt.Errorf("seccomp: compile: %w", err)
	}
	return binary.Append(nil, binary.NativeEndian, p)
})

// compile asks, in this order: which architecture, which call, which arguments.
//
// Kernels from 5.11 on try out, when the filter is loaded, which calls it allows
// whatever their arguments, and don't run it for those. They give up on a call at
// the first look at an argument, so that only guarded calls may get to one.
func compile(m machine, allowed, denied []Row) ([]unix.SockFilter, error) {
	g := graph{}
	calls := map[uint32]*node{}
	for _, r := range allowed {
		n, err := g.refusals(r.Refuse)
		if err == nil {
			err = decide(calls, m, r.Name, n)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	for _, r := range denied {
		if err := decide(calls, m, r.Name, g.errno(unix.EPERM)); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	kill := g.answer(unix.SECCOMP_RET_KILL_PROCESS)
	which := g.search(callNumber, spansOfCalls(calls, m, g.errno(unix.ENOSYS), kill))
	return assemble(g.ask(callArch, unix.BPF_JEQ, m.audit, which, kill))
}

// decide notes what is to happen to a call, if this architecture has it. Unknown
// calls get ENOSYS as it is.
func decide(calls map[uint32]*node, m machine, name string, n *node) error {
	nr, err := m.number(name)
	if errors.Is(err, libseccomp.ErrSyscallDoesNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, twice := calls[nr]; twice {
		return fmt.Errorf("call %d is listed twice", nr)
	}
	if nr >= x32Bit {
		return fmt.Errorf("call %d is one of x32", nr)
	}
	calls[nr] = n
	return nil
}

func spansOfCalls(calls map[uint32]*node, m machine, unknown, kill *node) []span {
	list := spans(calls, unknown)
	if m.x32 {
		// -1 is no call of x32, but what tracers set to have a call skipped.
		list = append(list, span{x32Bit, kill}, span{math.MaxUint32, unknown})
	}
	return list
}
