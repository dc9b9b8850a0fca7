package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"gaol/rootfs"
	"gaol/runtime"
)

// advisedError is an error with the advice that Print appends to it.
type advisedError struct {
	error
	advice string
}

func (e *advisedError) Unwrap() error { return e.error }

// Advise attaches advice to err.
func Advise(err error, advice string) error { return &advisedError{err, advice} }

// UsageError marks err as a mistake in the command line of command, such as "gaol run". It
// returns nil for nil.
func UsageError(command string, err error) error {
	if err == nil {
		return nil
	}
	return Advise(err, "see "+command+" --help")
}

// OutputError is a failure to write to standard output or standard error.
type OutputError struct{ *fs.PathError }

// NewOutputError returns the error of a write to a stream.
func NewOutputError(stream string, err error) *OutputError {
	return &OutputError{&fs.PathError{Op: "write", Path: stream, Err: WithoutPath(err)}}
}

// WithoutPath removes the path that *os.File adds to an error, for messages that have it already.
func WithoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// Write writes text to one of gaol's own streams, which errors call by its name.
func Write(w io.Writer, stream string, text []byte) error {
	if _, err := w.Write(text); err != nil {
		return NewOutputError(stream, err)
	}
	return nil
}

// Stdout writes text to standard output.
func Stdout(w io.Writer, text string) error { return Write(w, "standard output", []byte(text)) }

// advice is for errors that users meet. The first match counts, so an error's own
// meaning precedes the errno it may wrap.
var advice = []struct {
	is   error
	text string
}{
	{rootfs.ErrNoStore, "`gaol image build` and `gaol image import` create one at --store"},
	{rootfs.ErrNoSnapshot, "`gaol snapshot ls` lists the snapshots, `gaol run --save NAME` takes one"},
	{rootfs.ErrAmbiguousSnapshot, "give more of the id, as `gaol snapshot ls` prints it"},
	{rootfs.ErrNotFound, "`gaol image ls` lists the images, `gaol image build` makes one"},
	{rootfs.ErrAmbiguous, "give more of the id, as `gaol image ls` prints it"},
	{rootfs.ErrUnauthorized, "`docker login` to the registry as this user, or check the image's name"},
	{rootfs.ErrTooLarge, "--max-size and --max-entries set the limits"},
	{syscall.EMFILE, "gaol needs some 50 descriptors, and more for mounts: raise its limit with `ulimit -n`, or LimitNOFILE= of its service"},
	{syscall.ENFILE, "the machine's open files are used up: raise sysctl fs.file-max"},
	{syscall.ENOSPC, "free some disk space, or choose another disk with --store"},
	{syscall.EDQUOT, "free some disk space, or choose another disk with --store"},
	{syscall.EROFS, "choose a writable folder with --store"},
	{syscall.ELOOP, "name places in the guest without symbolic links: `gaol run --command -- readlink -f PATH` prints where one leads"},
}

// adviceFor returns what to do about err, or "".
func adviceFor(err error) string {
	if a, ok := errors.AsType[*advisedError](err); ok {
		return a.advice
	}
	if _, ok := errors.AsType[*OutputError](err); ok {
		return "send it to where there is room for it"
	}
	for _, a := range advice {
		if errors.Is(err, a.is) {
			return a.text
		}
	}
	if errors.Is(err, os.ErrPermission) {
		return permissionAdvice(os.Geteuid())
	}
	return ""
}

// permissionAdvice is for system calls that the host denied to gaol.
func permissionAdvice(uid int) string {
	if uid == 0 {
		return "gaol is root, but something else confines it: `gaol doctor` prints the missing features"
	}
	return "run gaol as root (sudo gaol ...); `gaol doctor` prints the missing features"
}

// Print writes err to w as one line, with advice if there is any. Errors of package runtime
// begin with "gaol: " themselves.
func Print(w io.Writer, err error) {
	text := strings.TrimPrefix(OneLine(withFlagNames(err)), "gaol: ")
	if a := adviceFor(err); a != "" {
		text += "; " + a
	}
	Notes(w, text)
}

// Notes writes lines of gaol's own to standard error.
func Notes(w io.Writer, lines ...string) {
	for _, line := range lines {
		fmt.Fprintln(w, "gaol: "+line)
	}
}

// OneLine joins the lines of s and replaces control characters: messages of cobra
// and other tools have several lines, and file names in them may contain anything.
func OneLine(s string) string { return Sanitize(strings.Join(strings.Fields(s), " "), false) }

// ErrorText returns a guest's error for people: its stack, which usually starts with
// its message, with the causes, and the frame, the lines of code around the place.
func ErrorText(e *runtime.GuestError) string {
	text := e.Trace()
	if e.Frame != "" {
		text += "\n\n" + e.Frame
	}
	return strings.TrimRight(text, "\n")
}

// limitFlags maps fields of runtime.Limits and EvaluateOptions to flags.
var limitFlags = map[string]string{
	"Memory": "memory", "CPUs": "cpus", "CPUTime": "cpu-time", "Pids": "pids", "OpenFiles": "open-files", "Disk": "disk", "Files": "files", "Output": "max-output",
	"Heap": "heap", "MaxOutput": "max-output", "MaxLogs": "max-logs", "MaxLogLength": "max-log-length",
}

// optionFlags maps fields of runtime.Options and its relatives to flags.
var optionFlags = map[string]string{
	"AuditDenials": "--audit-denials", "Cwd": "--cwd", "Env": "--env", "Files": "--file", "Format": "--format", "Globals": "--globals", "HostPorts": "--host-port", "Hostname": "--hostname", "Isolation": "--isolation", "OCI": "--isolation", "Proxy": "--proxy",
	"Launcher": "--launcher", "Mounts": "--mount", "Name": "FILE", "NodeModules": "--node-modules", "Permissions": "--permissions",
	"Snapshot": "--snapshot", "Store": "--store",
}

// withFlagNames returns err's text with the name of the first option or limit in it
// replaced by the flag that sets it.
func withFlagNames(err error) string {
	text := err.Error()
	if o, ok := errors.AsType[*runtime.OptionError](err); ok && optionFlags[o.Option] != "" {
		text = strings.Replace(text, o.Error(), optionFlags[o.Option]+": "+o.Err.Error(), 1)
	}
	if l, ok := errors.AsType[*runtime.LimitError](err); ok && limitFlags[l.Limit] != "" {
		text = strings.Replace(text, "limit "+l.Limit+":", "--"+limitFlags[l.Limit]+":", 1)
	}
	return text
}
