package landlock

import (
	"errors"
	"fmt"
	"os"
	"slices"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"gaol/jail/kernfile"
)

// Ruleset defines the rights that a domain denies and grants. The zero value denies nothing; Make
// rejects it.
type Ruleset struct {
	// Handled are the rights that are denied unless a rule grants them. If it has any,
	// renames and links from one folder to another are denied with EXDEV, even if Refer
	// is not among them. Only rules that grant Refer for both folders allow them, and
	// only if the file gains no right by it.
	Handled Access

	// Rules grant rights.
	Rules []Rule

	// ConnectTCP are the ports to which TCP sockets may connect. Nil: all. ABI 4.
	ConnectTCP *Ports

	// Signals denies signals to processes outside of the domain. ABI 6.
	Signals bool

	// Degraded makes Make omit the parts that the kernel does not support, which Missing
	// returns, instead of failing with an *ABIError.
	Degraded bool
}

// Rule grants rights to a file or to a folder and everything below it.
type Rule struct {
	Path     string // a guest's path: absolute, without symbolic links
	Tree     bool   // a folder and everything below it; otherwise the path must be a file
	Access   Access // handled rights; for a file, folder rights are ignored
	Optional bool   // a missing path is not an error
}

// Ports are TCP ports. The zero value has none.
type Ports struct {
	Allowed []uint16
}

// The ABIs of the parts of a ruleset that are not rights to files.
const (
	portsABI   = 4
	signalsABI = 6
)

// need is a part of a ruleset and the ABI that it needs.
type need struct {
	what string
	abi  int
}

// lacks returns the parts of r that an ABI does not support.
func (r *Ruleset) lacks(abi int) []need {
	var list []need
	for _, right := range rights {
		if r.Handled&right.Bit != 0 && right.ABI > abi {
			list = append(list, need{right.Name, right.ABI})
		}
	}
	if r.ConnectTCP != nil && abi < portsABI {
		list = append(list, need{"connect_tcp", portsABI})
	}
	if r.Signals && abi < signalsABI {
		list = append(list, need{"signal scope", signalsABI})
	}
	return list
}

// Needs returns the least ABI that supports all of r, the first release of Linux with that
// ABI, and the part of r that needs it. ABI 0 means that r is empty.
func (r *Ruleset) Needs() (abi int, linux, what string) {
	for _, n := range r.lacks(0) {
		if n.abi > abi {
			abi, linux, what = n.abi, versions[n.abi-1].Linux, n.what
		}
	}
	return abi, linux, what
}

// Missing returns the names of the parts of r that this kernel does not support, which
// Make omits if r is Degraded. For errors, see ABI.
func (r *Ruleset) Missing() (names []string, err error) {
	abi, err := ABI()
	if err != nil {
		return nil, err
	}
	for _, n := range r.lacks(abi) {
		names = append(names, n.what)
	}
	return names, nil
}

// fit returns r if the ABI supports it. If r is Degraded, it returns a copy without the
// unsupported parts.
func (r *Ruleset) fit(abi int) (*Ruleset, error) {
	need, linux, what := r.Needs()
	if need <= abi {
		return r, nil
	}
	if !r.Degraded {
		return nil, &ABIError{Have: abi, Need: need, Linux: linux, What: what}
	}
	fitted := *r
	fitted.Handled &= mask(func(right right) bool { return right.ABI <= abi })
	fitted.Rules = slices.Clone(r.Rules)
	for i := range fitted.Rules {
		fitted.Rules[i].Access &= fitted.Handled
	}
	if abi < portsABI {
		fitted.ConnectTCP = nil
	}
	fitted.Signals = r.Signals && abi >= signalsABI
	return &fitted, nil
}

// Causes of a rule's error that are not errors of the kernel.
var (
	ErrFolder  = errors.New("is a folder")
	ErrSymlink = errors.New("a symbolic link is on the way")
)

// ErrNothing is the error if a ruleset denies nothing, or would deny nothing without the
// parts that this kernel does not support.
var ErrNothing = errors.New("landlock: the ruleset denies nothing")

// Make creates the ruleset. The paths of its rules are relative to root, a folder opened
// with O_PATH, and can't lead out of it. Rules are for the files that exist at their paths
// now, not for files that replace them later.
//
// The file is close-on-exec. Any number of processes can enforce it, by
// landlock_restrict_self(2). The caller must close it; existing domains are not affected by
// that.
//
// Errors: *ABIError, *UnavailableError, ErrNothing, an *os.SyscallError or a rule's error.
func (r *Ruleset) Make(root *os.File) (*os.File, error) {
	abi, err := ABI()
	if err != nil {
		return nil, err
	}
	return r.makeFor(abi, root)
}

func (r *Ruleset) makeFor(abi int, root *os.File) (*os.File, error) {
	fitted, err := r.fit(abi)
	if err != nil {
		return nil, err
	}
	attr := fitted.attr()
	if attr == (ll.RulesetAttr{}) {
		return nil, ErrNothing
	}
	fd, err := ll.LandlockCreateRuleset(&attr, 0)
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

// attr sets only fields of the rights that are handled: the kernel accepts the longer
// structure of a later ABI if the fields that it does not know are zero.
func (r *Ruleset) attr() ll.RulesetAttr {
	attr := ll.RulesetAttr{HandledAccessFS: uint64(r.Handled)}
	if r.ConnectTCP != nil {
		attr.HandledAccessNet = ll.AccessNetConnectTCP
	}
	if r.Signals {
		attr.Scoped = ll.ScopeSignal
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
			return fmt.Errorf("landlock: rule for %s: %w", rule.Path, err)
		}
	}
	return nil
}

func (r *Ruleset) addPorts(fd int) error {
	if r.ConnectTCP == nil {
		return nil
	}
	for _, port := range r.ConnectTCP.Allowed {
		attr := ll.NetPortAttr{AllowedAccess: ll.AccessNetConnectTCP, Port: uint64(port)}
		if err := ll.LandlockAddNetPortRule(fd, &attr, 0); err != nil {
			return os.NewSyscallError("landlock_add_rule", err)
		}
	}
	return nil
}

func (rule *Rule) add(ruleset int, root *os.File) error {
	// A process that can replace a symbolic link could choose the granted files.
	const resolve = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	file, err := kernfile.Openat2(root, rule.Path, unix.O_PATH, resolve)
	if err == unix.ELOOP {
		return ErrSymlink
	}
	if err != nil {
		return err
	}
	defer file.Close()
	fd := int(file.Fd())
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
	if access == 0 { // the kernel rejects empty rules
		return nil
	}
	return ll.LandlockAddPathBeneathRule(ruleset, &ll.PathBeneathAttr{AllowedAccess: uint64(access), ParentFd: fd}, 0)
}
