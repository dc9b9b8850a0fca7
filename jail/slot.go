package jail

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/kernel"
	"gaol/jail/mounts"
	"gaol/jail/step"
)

// The host ids that jails use. systemd's UIDS-GIDS.md assigns 1879048192 to 2147483647 to
// nothing: no user, no subuid range of the usual tools and no other container manager has
// them.
const (
	FirstID  = 0x70000000                                 // the host's number of id 0 of the first jail of a kernel without id maps
	maxSlots = (0x80000000 - FirstID) / mounts.IDsPerJail // 4096 live jails on a machine
)

var errNoSlot = fmt.Errorf("all %d slots for live jails are in use", maxSlots)

// Identity is a range of host users and a cgroup, for a jail or for a process outside jails. No other
// Identity of the machine shares them. It is a slot, one of the numbers that a machine has for them, which
// determines the user ids, the name and the cgroup. It is held by locking a file in the state folder. The
// kernel releases the lock when the process that holds it dies: the file then names the objects that must be
// removed, which the next host does.
type Identity struct {
	number       int
	file         *os.File
	cgroupParent string // "" if the file has no valid claim
}

// claim is the content of a slot's file: the objects to remove if the process that holds the
// slot dies.
type claim struct {
	CgroupParent string `json:"cgroupParent"`
}

// NewIdentity reserves an identity, in the same folder and with the same parent as a [Spec]'s. It
// makes the folder and sweeps it first.
func NewIdentity(ctx context.Context, stateDir, cgroupParent string) (*Identity, error) {
	stateDir = filepath.Clean(cmp.Or(stateDir, DefaultStateDir))
	if _, err := cgroup.Detect(); err != nil { // first: a sweep needs the cgroups
		return nil, step.Wrap("find", "cgroups", err)
	}
	if err := makeStateDirs(stateDir); err != nil {
		return nil, err
	}
	sweepOnce(stateDir)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	i, err := takeSlot(jailsDir(stateDir), cgroupParent)
	return i, step.Wrap("register", stateDir, err)
}

// ID returns the number of the host's user and group, for a process, or of the first ones of a jail.
func (i *Identity) ID() int { return FirstID + i.number*mounts.IDsPerJail }

// Cgroup returns the path of the cgroup, for [cgroup.New]. It does not exist yet.
func (i *Identity) Cgroup() string { return path.Join(i.cgroupParent, i.name()) }

// Release kills the processes in the cgroup, removes it, and frees the identity.
func (i *Identity) Release() error { return i.clear(nil) }

// clear removes the cgroup with its processes and the container, and frees the identity. It does not
// free it after an error, which may be an earlier one.
func (i *Identity) clear(failed error) error {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	failed = errors.Join(failed, step.Wrap("clear", i.name(), errors.Join(cgroup.Remove(ctx, i.Cgroup()), os.RemoveAll(i.Dir()))))
	if failed != nil {
		swept.Delete(i.stateDir()) // the claim stays, unlocked, for a sweep
		return errors.Join(failed, i.file.Close())
	}
	return step.Wrap("release", i.name(), i.release())
}

func (i *Identity) stateDir() string { return filepath.Dir(filepath.Dir(i.file.Name())) }

func (i *Identity) name() string { return "j" + strconv.Itoa(i.number) }

// takeSlot locks a free slot. If a process that held it died, takeSlot first removes the rest
// of its jail, so that no process of an older jail runs under the same user ids. If that
// fails, it tries the next slot.
func takeSlot(dir, cgroupParent string) (*Identity, error) {
	full := errNoSlot
	start := rand.IntN(maxSlots)
	if kernel.Probe().Lacks(kernel.MountAttr) { // then the host has mapped the mounts of this kernel to these ids
		start = 0
	}
	for i := range maxSlots {
		s, err := lockSlot(dir, (start+i)%maxSlots, os.O_CREATE)
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		if err := s.removeJail(); err != nil {
			full = errors.Join(full, err, s.file.Close())
			continue
		}
		s.cgroupParent = cgroupParent
		if err := s.write(); err != nil {
			return nil, errors.Join(err, s.release())
		}
		return s, nil
	}
	return nil, full
}

// lockSlot locks slot n. It returns nil if the slot is held, if it does not exist and flag
// lacks O_CREATE, or if the file of that name is not a regular one.
func lockSlot(dir string, n, flag int) (*Identity, error) {
	name := filepath.Join(dir, strconv.Itoa(n)+slotSuffix)
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|flag, 0o600)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &Identity{number: n, file: f}
	if !s.lock() {
		return nil, f.Close()
	}
	return s, nil
}

// lock reports whether it has locked the current file of that name: the process that held
// the slot may have removed the opened file.
func (i *Identity) lock() bool {
	if unix.Flock(int(i.file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false
	}
	opened, err1 := i.file.Stat()
	named, err2 := os.Stat(i.file.Name())
	return err1 == nil && err2 == nil && opened.Mode().IsRegular() && os.SameFile(opened, named)
}

// read reads the cgroup's parent. It leaves it empty for a file without a valid claim: the process that
// wrote it died before it made anything.
func (i *Identity) read() error {
	text, err := io.ReadAll(io.LimitReader(i.file, 4096))
	var c claim
	p := &c.CgroupParent
	if err == nil && json.Unmarshal(text, &c) == nil && path.IsAbs(*p) && path.Clean(*p) == *p && *p != "/" {
		i.cgroupParent = *p
	}
	return err
}

// write replaces the content. It is not atomic: read ignores a partial claim.
func (i *Identity) write() error {
	text, err := json.Marshal(claim{i.cgroupParent})
	if err != nil {
		return err
	}
	_, written := i.file.WriteAt(text, 0)
	return errors.Join(written, i.file.Truncate(int64(len(text))))
}

// release frees the slot. Nothing of its jail may be left.
func (i *Identity) release() error {
	return errors.Join(os.Remove(i.file.Name()), i.file.Close())
}

const (
	slotSuffix  = ".slot"
	killTimeout = 10 * time.Second // for the processes of one jail to be gone
)

// swept is the set of state folders that this process has swept. A folder is removed from it
// when the process fails to remove a jail: the next Create then sweeps again.
var swept sync.Map

// sweepOnce sweeps a folder unless this process has done so. A jail that can't be removed
// occupies a slot and does no other harm.
func sweepOnce(stateDir string) {
	if _, done := swept.LoadOrStore(stateDir, true); done {
		return
	}
	// Try again after a shortage that may be temporary, but not for a process that can't be
	// killed: each try waits for the timeout.
	if err := sweep(stateDir); errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM) {
		swept.Delete(stateDir)
	}
}

// sweep removes leftovers of dead host processes from the state folder and the cgroups.
func sweep(stateDir string) error {
	dir := jailsDir(stateDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return step.Wrap("sweep", dir, err)
	}
	var failed error
	for _, e := range entries {
		var n int
		if _, err := fmt.Sscanf(e.Name(), "%d"+slotSuffix, &n); err == nil {
			failed = errors.Join(failed, step.Wrap("sweep", e.Name(), sweepSlot(dir, n)))
		}
	}
	return failed
}

// sweepSlot does nothing to a slot that a live process has locked.
func sweepSlot(dir string, n int) error {
	s, err := lockSlot(dir, n, 0)
	if err != nil || s == nil {
		return err
	}
	if err := s.removeJail(); err != nil {
		return errors.Join(err, s.file.Close())
	}
	return s.release()
}

// removeJail removes the rest of a jail after its host process died.
func (i *Identity) removeJail() error {
	if err := i.read(); err != nil || i.cgroupParent == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	return errors.Join(cgroup.Remove(ctx, i.Cgroup()), i.removeScopes(ctx), os.RemoveAll(i.Dir())) // no process uses the folder any more
}

// scopeSlice is the cgroup with the scopes that systemd makes for containers.
const scopeSlice = "system.slice"

// newScope returns the name of a scope for the jail's container, without its prefix and suffix. It is
// new even if systemd has not removed the scope of a former jail yet.
func (i *Identity) newScope() string { return i.name() + "-" + strconv.FormatUint(rand.Uint64(), 36) }

// removeScopes kills the processes in scopes of the slot's containers, which systemd then removes, too.
func (i *Identity) removeScopes(ctx context.Context) error {
	slice, err := cgroup.Open("/" + scopeSlice)
	if err != nil {
		return err
	}
	return slice.Sweep(ctx, func(name string) bool {
		return !strings.HasPrefix(name, scopePrefix+"-"+i.name()+"-") || !strings.HasSuffix(name, ".scope")
	})
}

const scopePrefix = "gaol"

// Dir returns the path of a folder for files, such as those of a container. It does not exist yet. Its removal comes with that of the
// cgroup.
func (i *Identity) Dir() string { return filepath.Join(containersDir(i.stateDir()), i.name()) }

// DefaultStateDir is where live jails are registered.
const DefaultStateDir = "/run/gaol"

// The state folder:
//
//	jails/N.slot    the claim of the process that holds slot N, locked by it
//	oci/jN          the folder of the jail in slot N, if it is a container
//	stage           where the thread of each jail mounts its tree; others see only an empty root in it
func jailsDir(stateDir string) string      { return filepath.Join(stateDir, "jails") }
func containersDir(stateDir string) string { return filepath.Join(stateDir, "oci") }

// containerRoot is the root directory of containers where their trees are mounted. The folder
// that others see there is empty; OCI runtimes enter it before they enter a container.
func containerRoot(stateDir string) string { return filepath.Join(stageDir(stateDir), mounts.Root) }
func stageDir(stateDir string) string      { return filepath.Join(stateDir, "stage") }

// makeStateDirs makes the folders that all jails share, independently of the umask.
func makeStateDirs(stateDir string) error {
	for _, dir := range []string{stateDir, jailsDir(stateDir), stageDir(stateDir), containersDir(stateDir), containerRoot(stateDir)} {
		if err := makeStateDir(dir); err != nil {
			return step.Wrap("make", dir, err)
		}
	}
	return nil
}

func makeStateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	// Other users who could write there could make root follow their links.
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; !info.IsDir() || int(owner) != os.Geteuid() || info.Mode()&0o022 != 0 {
		return errors.New("not a folder that only this user can write to")
	}
	return os.Chmod(dir, 0o711)
}
