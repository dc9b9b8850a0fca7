package landlock

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
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
	// Only fields of the rights that are handled are set: the kernel accepts the longer
	// structure of a later ABI if the fields that it does not know are zero.
	attr := ll.RulesetAttr{HandledAccessFS: uint64(fitted.Handled)}
	if fitted.ConnectTCP != nil {
		attr.HandledAccessNet = ll.AccessNetConnectTCP
	}
	if fitted.Signals {
		attr.Scoped = ll.ScopeSignal
	}
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

// Access is a set of rights to files, with the values of the kernel's
// LANDLOCK_ACCESS_FS_*.
type Access uint64

// The rights. The table rights describes each.
const (
	Execute    Access = unix.LANDLOCK_ACCESS_FS_EXECUTE
	WriteFile  Access = unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	ReadFile   Access = unix.LANDLOCK_ACCESS_FS_READ_FILE
	ReadDir    Access = unix.LANDLOCK_ACCESS_FS_READ_DIR
	RemoveDir  Access = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR
	RemoveFile Access = unix.LANDLOCK_ACCESS_FS_REMOVE_FILE
	MakeChar   Access = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR
	MakeDir    Access = unix.LANDLOCK_ACCESS_FS_MAKE_DIR
	MakeReg    Access = unix.LANDLOCK_ACCESS_FS_MAKE_REG
	MakeSock   Access = unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
	MakeFifo   Access = unix.LANDLOCK_ACCESS_FS_MAKE_FIFO
	MakeBlock  Access = unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	MakeSym    Access = unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	Refer      Access = unix.LANDLOCK_ACCESS_FS_REFER
	Truncate   Access = unix.LANDLOCK_ACCESS_FS_TRUNCATE
	IoctlDev   Access = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// right describes a right.
type right struct {
	Name   string // as in the kernel's audit records after "fs."
	Bit    Access
	ABI    int    // the first with this right
	File   bool   // applies to files, not only to folders
	Reason string // the effect of denying it
}

// rights are all known rights, by ABI and bit.
var rights = []right{
	{"execute", Execute, 1, true, "programs can't be executed; reading them is another right"},
	{"write_file", WriteFile, 1, true, "files can't be opened for writing"},
	{"read_file", ReadFile, 1, true, "files can't be opened for reading"},
	{"read_dir", ReadDir, 1, false, "folders can't be listed; a file in one may still be opened by its name"},
	{"remove_dir", RemoveDir, 1, false, "folders can't be removed or renamed"},
	{"remove_file", RemoveFile, 1, false, "other files can't be removed or renamed"},
	{"make_char", MakeChar, 1, false, "no new device file gives access to a device"},
	{"make_dir", MakeDir, 1, false, "folders can't be created, or renamed to here"},
	{"make_reg", MakeReg, 1, false, "files can't be created, or renamed or linked to here"},
	{"make_sock", MakeSock, 1, false, "unix sockets can't be bound to a path"},
	{"make_fifo", MakeFifo, 1, false, "named pipes can't be created"},
	{"make_block", MakeBlock, 1, false, "as make_char"},
	{"make_sym", MakeSym, 1, false, "no symbolic link can mislead other programs"},
	{"refer", Refer, 2, false, "files stay in the folder whose rules they were created under"},
	{"truncate", Truncate, 3, true, "files can't be truncated; write_file does not deny truncate(2)"},
	{"ioctl_dev", IoctlDev, 5, true, "devices get no ioctl commands except the generic ones"},
}

// fileRights are the rights that a rule for a file may grant: the kernel rejects others.
var fileRights = mask(func(r right) bool { return r.File })

func mask(want func(right) bool) (a Access) {
	for _, r := range rights {
		if want(r) {
			a |= r.Bit
		}
	}
	return a
}

// Version is a version of the kernel's Landlock interface.
type Version struct {
	ABI   int
	Linux string // the first release with it
	Adds  string // the feature that it added, for errors about older kernels
}

var versions = []Version{
	{1, "5.13", "rights to files"},
	{2, "5.19", "renames and links from folder to folder"},
	{3, "6.2", "a right to truncate files"},
	{4, "6.7", "rights to TCP ports"},
	{5, "6.10", "a right to send devices commands"},
	{6, "6.12", "scopes for signals and abstract unix sockets"},
	{7, "6.15", "denials in the audit log"},
}

// Versions returns all versions up to the newest that this package uses.
func Versions() []Version { return slices.Clone(versions) }

// UnavailableError is the error if this kernel does not support Landlock.
type UnavailableError struct {
	Cure string // advice for the administrator
	Err  error  // the kernel's error
}

// Error returns a text such as "landlock: operation not supported; add landlock to ...".
func (e *UnavailableError) Error() string { return "landlock: " + e.Err.Error() + "; " + e.Cure }

// Unwrap returns the kernel's error.
func (e *UnavailableError) Unwrap() error { return e.Err }

// ABIError is the error if the kernel's Landlock is too old for a ruleset.
type ABIError struct {
	Have  int    // the kernel's ABI
	Need  int    // the least sufficient ABI
	Linux string // the first release with it
	What  string // the part of the ruleset that needs it
}

// Error returns a text such as "landlock: truncate needs ABI 3, Linux 6.2 or later; this kernel has ABI 1".
func (e *ABIError) Error() string {
	return fmt.Sprintf("landlock: %s needs ABI %d, Linux %s or later; this kernel has ABI %d", e.What, e.Need, e.Linux, e.Have)
}

// ABI returns the version of the kernel's Landlock, at least 1. It queries the kernel
// once. The error is a *UnavailableError.
var ABI = sync.OnceValues(func() (int, error) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0, unavailable(err)
	}
	return abi, nil
})

// unavailable adds the cure for an error of landlock_create_ruleset(2).
func unavailable(err error) error {
	cure := "allow landlock_create_ruleset in the container's seccomp profile"
	switch err {
	case unix.ENOSYS:
		cure = "boot a kernel of version 5.13 or later with CONFIG_SECURITY_LANDLOCK=y"
	case unix.EOPNOTSUPP:
		cure = "add landlock to the kernel's lsm= parameter, before the others"
	}
	return &UnavailableError{cure, err}
}
