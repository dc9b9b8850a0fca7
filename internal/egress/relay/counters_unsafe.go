package relay

import (
	"errors"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Counters are the bytes of each connection, in memory that a relay shares with its host: the host
// reads them without asking. A relay can write any number.
type Counters struct {
	memory []byte
	values []counter
}

type counter struct{ in, out atomic.Int64 }

// maxBytes bounds each count that a relay claims, so that sums do not overflow.
const maxBytes = 1 << 48

// newCounters makes counters of n connections, and a descriptor to share them with. Their size is
// sealed: a relay that cut it would kill the host with SIGBUS.
func newCounters(n int) (*Counters, int, error) {
	fd, err := unix.MemfdCreate("gaol-egress", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("gaol-egress", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, 0, os.NewSyscallError("memfd_create", err)
	}
	var c *Counters
	if err = unix.Ftruncate(fd, int64(n*counterSize)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err == nil {
		c, err = mapCounters(fd, n)
	}
	if err != nil {
		return nil, 0, errors.Join(err, unix.Close(fd))
	}
	return c, fd, nil
}

const counterSize = int(unsafe.Sizeof(counter{}))

func mapCounters(fd, n int) (*Counters, error) {
	memory, err := unix.Mmap(fd, 0, n*counterSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return &Counters{memory, unsafe.Slice((*counter)(unsafe.Pointer(&memory[0])), n)}, nil
}

// Bytes returns how many bytes of a connection came from the server and went to it.
func (c *Counters) Bytes(id uint32) (in, out int64) {
	v := &c.values[id]
	return min(max(v.in.Load(), 0), maxBytes), min(max(v.out.Load(), 0), maxBytes)
}

// Reset is called before a connection uses the id.
func (c *Counters) Reset(id uint32) {
	c.values[id].in.Store(0)
	c.values[id].out.Store(0)
}

// close unmaps the memory. Nothing may use c afterwards.
func (c *Counters) close() error { return unix.Munmap(c.memory) }
