package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"gaol/rootfs"
	"gaol/runtime"
)

// Exit statuses that are not the guest's own; the first three are those of
// timeout(1) and of docker run.
const (
	exitTimeout   = 124
	exitFailure   = 125
	exitMemory    = 137
	exitSignal    = 128 // plus the signal's number
	exitNoReaders = exitSignal + int(syscall.SIGPIPE)
)

// advisedError is an error that knows what to do about it.
type advisedError struct {
	err    error
	advice string
}

func (e *advisedError) Error() string { return e.err.Error() }
func (e *advisedError) Unwrap() error { return e.err }

// usageError makes err a mistake in the command line of the command at path.
func usageError(path string, err error) error {
	return &advisedError{err, "see " + path + " --help"}
}

// outputError is a failure to hand output on.
type outputError struct {
	stream string
	err    error
}

// newOutputError leaves out what *os.File adds: the stream has a name here.
func newOutputError(stream string, err error) *outputError {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return &outputError{stream, err}
}

func (e *outputError) Error() string { return "write " + e.stream + ": " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// cures says what to do about errors that users meet. The first match counts,
// so an error's own meaning comes before the errno it may wrap.
var cures = []struct {
	is   error
	cure string
}{
	{rootfs.ErrNoStore, "`gaol image build` and `gaol image import` make one where --store says"},
	{rootfs.ErrNoSnapshot, "`gaol snapshot ls` lists the snapshots there are, `gaol run --save NAME` takes one"},
	{rootfs.ErrAmbiguousSnapshot, "give more of the id, as `gaol snapshot ls` prints it"},
	{rootfs.ErrNotFound, "`gaol image ls` lists the images there are, `gaol image build` makes one"},
	{rootfs.ErrAmbiguous, "give more of the id, as `gaol image ls` prints it"},
	{rootfs.ErrUnauthorized, "`docker login` to the registry as this user, or check the image's name"},
	{rootfs.ErrTooLarge, "--max-size and --max-entries set the limits"},
	{syscall.EMFILE, "gaol needs some 50 descriptors, and more for mounts: raise its limit with `ulimit -n`, or LimitNOFILE= of its service"},
	{syscall.ENFILE, "the machine's open files are used up: raise sysctl fs.file-max"},
	{syscall.ENOSPC, "free some disk space, or choose another disk with --store"},
	{syscall.EDQUOT, "free some disk space, or choose another disk with --store"},
	{syscall.EROFS, "choose a folder that can be written with --store"},
	{syscall.ELOOP, "name places in the guest without symbolic links: `gaol run --command -- readlink -f PATH` says where one leads"},
}

// cureFor gives the sentence that ends err's line, or "".
func cureFor(err error) string {
	if a, ok := errors.AsType[*advisedError](err); ok {
		return a.advice
	}
	if _, ok := errors.AsType[*outputError](err); ok {
		return "send it to where there is room for it"
	}
	if l, ok := errors.AsType[*runtime.LimitError](err); ok {
		return limitCure(l)
	}
	if l, ok := errors.AsType[*runtime.HostLimitError](err); ok {
		return hostLimitCure(l)
	}
	for _, c := range cures {
		if errors.Is(err, c.is) {
			return c.cure
		}
	}
	if errors.Is(err, os.ErrPermission) {
		return permissionCure(os.Geteuid())
	}
	return ""
}

// permissionCure is about what the host refuses to gaol.
func permissionCure(uid int) string {
	if uid == 0 {
		return "gaol is root, whom something else holds: `gaol doctor` says what is missing"
	}
	return "run gaol as root (sudo gaol ...); `gaol doctor` says what is missing"
}

// limitFlags are the flags that set runtime.Limits and EvaluateOptions, by field.
var limitFlags = map[string]string{
	"Memory": "memory", "CPUs": "cpus", "CPUTime": "cpu-time", "Pids": "pids", "Files": "open-files", "Disk": "disk", "Output": "max-output",
	"Heap": "heap", "MaxOutput": "max-output", "MaxLogs": "max-logs", "MaxLogLength": "max-log-length",
}

// sizeLimits are those that are bytes.
var sizeLimits = []string{"Memory", "Disk", "Output", "Heap", "MaxOutput"}

func limitCure(l *runtime.LimitError) string {
	if l.Value > l.Most {
		return fmt.Sprintf("--%s takes %s at most", limitFlags[l.Limit], limitText(l, l.Most))
	}
	return fmt.Sprintf("--%s takes %s and more", limitFlags[l.Limit], limitText(l, l.Least))
}

// optionFlags are what sets runtime.Options and their like, by field.
var optionFlags = map[string]string{
	"AuditDenials": "--audit-denials", "Cwd": "--cwd", "Env": "--env", "Files": "--file", "Format": "--format", "Globals": "--globals", "Hostname": "--hostname",
	"Launcher": "--launcher", "Mounts": "--mount", "Name": "FILE", "NodeModules": "--node-modules", "Permissions": "--permissions",
	"Snapshot": "--snapshot", "Store": "--store",
}

// inFlags is err's text, with flags in place of the first option or limit that it names.
func inFlags(err error) string {
	text := err.Error()
	if o, ok := errors.AsType[*runtime.OptionError](err); ok && optionFlags[o.Option] != "" {
		text = strings.Replace(text, o.Error(), optionFlags[o.Option]+": "+o.Err.Error(), 1)
	}
	if l, ok := errors.AsType[*runtime.LimitError](err); ok && limitFlags[l.Limit] != "" {
		what := "too little"
		if l.Value > l.Most {
			what = "too much"
		}
		text = strings.Replace(text, l.Error(), fmt.Sprintf("--%s %s is %s", limitFlags[l.Limit], limitText(l, l.Value), what), 1)
	}
	if l, ok := errors.AsType[*runtime.HostLimitError](err); ok && l.Most >= l.Least { // else no value of the flag helps
		text = strings.Replace(text, "limit "+l.Limit+":", "--"+limitFlags[l.Limit]+":", 1)
	}
	return text
}

// limitText is a limit as its flag takes it.
func limitText(l *runtime.LimitError, f float64) string {
	if slices.Contains(sizeLimits, l.Limit) {
		bytes := size(f)
		return bytes.String()
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// hostLimitCure is about limits that gaol itself has.
func hostLimitCure(l *runtime.HostLimitError) string {
	if l.Most < l.Least {
		return ""
	}
	return fmt.Sprintf("--%s takes %d at most", limitFlags[l.Limit], l.Most)
}

// complain prints err as the one line that gaol's own failures get.
func complain(w io.Writer, err error) {
	text := strings.TrimPrefix(oneLine(inFlags(err)), "gaol: ")
	if cure := cureFor(err); cure != "" {
		text += "; " + cure
	}
	fmt.Fprintln(w, "gaol: "+text)
}

// oneLine folds line breaks, which cobra's suggestions and some tools' messages
// have, and drops control characters: messages can quote file names.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}

// canceled gives the exit status of a command whose context ended, if it did
// for one of the reasons that make gaol end without a word.
func canceled(ctx context.Context, err error) (int, bool) {
	if sig, ok := errors.AsType[signalError](context.Cause(ctx)); ok {
		return exitSignal + int(sig.sig), true
	}
	// Only a pipe of gaol's own output: an EPIPE from elsewhere is a failure.
	if out, ok := errors.AsType[*outputError](err); ok && errors.Is(out, syscall.EPIPE) {
		return exitNoReaders, true
	}
	return 0, false
}
