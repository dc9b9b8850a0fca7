package landlock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// The causes in a RuleError that are not the kernel's own words.
var (
	ErrFolder  = errors.New("is a folder")
	ErrSymlink = errors.New("a symbolic link is on the way")
)

// ErrNothing says that a ruleset denies nothing, or would not without what this
// kernel lacks: there is nothing to put on.
var ErrNothing = errors.New("landlock: the ruleset denies nothing")

// Make makes the ruleset. The paths of its rules are those below root, a folder
// opened with O_PATH: nothing outside of it is looked at. What is granted is what is
// found at a path now, and not what comes there later.
//
// The file is close-on-exec and is to be given to landlock_restrict_self, by any
// process and as often as one likes: see Restrict. The caller closes it; domains
// that were made of it stay.
//
// Errors: *ABIError, *RuleError, *NoneError, ErrNothing or an *os.SyscallError.
func (r *Ruleset) Make(root *os.File) (*os.File, error) {
	abi, err := ABI()
	if err != nil {
		return nil, err
	}
	return r.makeFor(abi, root)
}

func (r *Ruleset) makeFor(abi int, root *os.File) (*os.File, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	fitted, err := r.fit(abi)
	if err != nil {
		return nil, err
	}
	attr := fitted.attr()
	if attr == (unix.LandlockRulesetAttr{}) {
		return nil, ErrNothing
	}
	fd, err := createRuleset(attr)
	if err != nil {
		return nil, os.NewSyscallError("landlock_create_ruleset", err)
	}
	file := os.NewFile(uintptr(fd), "landlock ruleset")
	if err := errors.Join(fitted.addRules(fd, root), fitted.addPorts(fd)); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func (r *Ruleset) attr() unix.LandlockRulesetAttr {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: uint64(r.Handled)}
	if r.ConnectTCP != nil {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if r.Signals {
		attr.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
	}
	if r.AbstractSockets {
		attr.Scoped |= unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	return attr
}

func (r *Ruleset) addRules(fd int, root *os.File) error {
	for _, rule := range r.Rules {
		err := rule.add(fd, root)
		if rule.Optional && errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return &RuleError{rule.Path, err}
		}
	}
	return nil
}

func (r *Ruleset) addPorts(fd int) error {
	if r.ConnectTCP == nil {
		return nil
	}
	for _, port := range r.ConnectTCP.Allowed {
		if err := addPort(fd, port); err != nil {
			return os.NewSyscallError("landlock_add_rule", err)
		}
	}
	return nil
}

func (rule *Rule) add(ruleset int, root *os.File) error {
	fd, err := openBelow(root, rule.Path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	access := rule.Access
	switch folder := stat.Mode&unix.S_IFMT == unix.S_IFDIR; {
	case folder && !rule.Tree:
		return ErrFolder
	case !folder:
		access &= fileRights
	}
	if access == 0 { // the kernel takes no empty rule
		return nil
	}
	return addPath(ruleset, fd, access)
}

// openBelow opens a path below root as a guest that has it for its root would, but
// walks no symbolic links: who can replace one could choose what is granted.
func openBelow(root *os.File, path string) (int, error) {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd, err := -1, error(unix.EAGAIN)
	for tries := 0; tries < 128 && (err == unix.EAGAIN || err == unix.EINTR); tries++ { // a rename next to a ".."
		fd, err = unix.Openat2(int(root.Fd()), path, &how)
	}
	if err == unix.ELOOP {
		return -1, ErrSymlink
	}
	return fd, err
}

// Restrict puts a ruleset on the calling thread, and on all that it starts from now
// on. It can't be taken off. Flags are LANDLOCK_RESTRICT_SELF_*, from ABI 7 on.
//
// Preconditions: the thread is locked, and has no_new_privs or CAP_SYS_ADMIN.
func Restrict(ruleset *os.File, flags int) error {
	_, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset.Fd(), uintptr(flags), 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	return nil
}
