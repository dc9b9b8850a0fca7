package jail

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// The host ids that jails use. systemd's UIDS-GIDS.md leaves 1879048192 to
// 2147483647 to nobody, so that no user, no subuid range of the customary tools
// and no other container manager has them.
const (
	firstID  = 0x70000000
	idsEach  = 65536
	maxSlots = (0x80000000 - firstID) / idsEach // 4096 live jails on a machine
)

var errNoSlot = fmt.Errorf("all %d places for live jails are taken", maxSlots)

// A slot is a live jail's place on this machine: its number gives the jail its
// range of user ids, its name and its cgroup. It is a locked file in the state
// folder. The kernel drops the lock when its holder dies, which tells the next
// one that what the file speaks of is left over.
type slot struct {
	number int
	file   *os.File
}

// claim is what a slot's file says: what must be cleared away if its holder died.
type claim struct {
	CgroupParent string `json:"cgroupParent"`
}

func (s *slot) name() string     { return "j" + strconv.Itoa(s.number) }
func (s *slot) firstHostID() int { return firstID + s.number*idsEach }

// takeSlot finds a free slot. One that a dead process held is cleared first, so
// that no process of an older jail can be alive under the ids that it gives. One
// that can't be cleared is passed over.
func takeSlot(dir, cgroupParent string) (*slot, error) {
	full := errNoSlot
	start := rand.IntN(maxSlots)
	for i := range maxSlots {
		s, err := lockSlot(dir, (start+i)%maxSlots, os.O_CREATE)
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		if err := s.clear(); err != nil {
			full = errors.Join(full, err, s.file.Close())
			continue
		}
		if err := s.write(claim{cgroupParent}); err != nil {
			return nil, errors.Join(err, s.release())
		}
		return s, nil
	}
	return nil, full
}

// lockSlot locks slot n. It returns nil if somebody holds it, if it does not exist
// and flag has no O_CREATE, or if something else has its name.
func lockSlot(dir string, n, flag int) (*slot, error) {
	name := filepath.Join(dir, strconv.Itoa(n)+slotSuffix)
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|flag, 0o600)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &slot{number: n, file: f}
	if !s.lock() {
		return nil, f.Close()
	}
	return s, nil
}

// lock reports whether it got the lock on the file that bears the name now: its
// last holder may have removed the one that was opened.
func (s *slot) lock() bool {
	if unix.Flock(int(s.file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false
	}
	opened, err1 := s.file.Stat()
	named, err2 := os.Stat(s.file.Name())
	return err1 == nil && err2 == nil && opened.Mode().IsRegular() && os.SameFile(opened, named)
}

// read returns nil for a file that holds no claim. One that was half written
// belongs to a host that had made nothing yet.
func (s *slot) read() (*claim, error) {
	text, err := io.ReadAll(io.LimitReader(s.file, 4096))
	if err != nil {
		return nil, err
	}
	var c claim
	p := &c.CgroupParent
	if json.Unmarshal(text, &c) != nil || !path.IsAbs(*p) || path.Clean(*p) != *p || *p == "/" {
		return nil, nil
	}
	return &c, nil
}

func (s *slot) write(c claim) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := s.file.Truncate(0); err != nil {
		return err
	}
	_, err = s.file.WriteAt(text, 0)
	return err
}

// release gives the slot back. Nothing of its jail may be left.
func (s *slot) release() error {
	return errors.Join(os.Remove(s.file.Name()), s.file.Close())
}
