package seccomp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"
)

// Compile gives the filter for this machine's architecture: an array of struct
// sock_filter in the machine's byte order. It takes some milliseconds the first
// time; the result is kept, and not to be changed.
func Compile() ([]byte, error) {
	compiled.Lock()
	defer compiled.Unlock()
	if compiled.program != nil {
		return compiled.program, nil
	}
	p, err := compile(Allowed, Denied)
	if err != nil {
		return nil, fmt.Errorf("seccomp: compile: %w", err)
	}
	compiled.program = p
	return p, nil
}

// compiled keeps no failure: it may have been for want of a file descriptor.
var compiled struct {
	sync.Mutex
	program []byte
}

// guarded marks, in the first program, calls that the second one decides on. No
// filter of ours returns it to the kernel.
var guarded = libseccomp.ActTrace.SetReturnCode(1)

// compile makes two programs and links them:
//
//	which call? ── plain ────> answer
//	            └─ guarded ──> which arguments? ──> answer
//
// One would not do. libseccomp gives whatever matches no rule of a filter the
// same answer; but an unknown call is to get ENOSYS, and an unknown argument of a
// known one is not.
func compile(allowed, denied []Row) ([]byte, error) {
	calls, err := build(errno(unix.ENOSYS), func(f *libseccomp.ScmpFilter) error {
		return errors.Join(addCalls(f, allowed), addDenied(f, denied))
	})
	if err != nil {
		return nil, err
	}
	args, err := build(libseccomp.ActAllow, func(f *libseccomp.ScmpFilter) error {
		return addRefusals(f, allowed)
	})
	if err != nil {
		return nil, err
	}
	return link(calls, args)
}

func errno(e syscall.Errno) libseccomp.ScmpAction {
	return libseccomp.ActErrno.SetReturnCode(int16(e))
}

// build makes one program.
func build(otherwise libseccomp.ScmpAction, add func(*libseccomp.ScmpFilter) error) ([]byte, error) {
	f, err := libseccomp.NewFilter(otherwise)
	if err != nil {
		return nil, err
	}
	defer f.Release()
	// The default kills the one thread, and leaves a process that hangs.
	if err := f.SetBadArchAction(libseccomp.ActKillProcess); err != nil {
		return nil, err
	}
	// A search tree in place of a list. Kernels from 5.11 on remember which calls
	// are always allowed, and ask the filter only about the others.
	if err := f.SetOptimize(2); err != nil {
		return nil, fmt.Errorf("libseccomp older than 2.5: %w", err)
	}
	if err := add(f); err != nil {
		return nil, err
	}
	return export(f)
}

func addCalls(f *libseccomp.ScmpFilter, rows []Row) error {
	return each(rows, func(nr libseccomp.ScmpSyscall, r Row) error {
		if len(r.Refuse) > 0 {
			return f.AddRule(nr, guarded)
		}
		return f.AddRule(nr, libseccomp.ActAllow)
	})
}

func addDenied(f *libseccomp.ScmpFilter, rows []Row) error {
	return each(rows, func(nr libseccomp.ScmpSyscall, r Row) error {
		return f.AddRule(nr, errno(unix.EPERM))
	})
}

func addRefusals(f *libseccomp.ScmpFilter, rows []Row) error {
	return each(rows, func(nr libseccomp.ScmpSyscall, r Row) error {
		for _, refusal := range r.Refuse {
			conditions, err := refusal.conditions()
			if err != nil {
				return err
			}
			if err := f.AddRuleConditional(nr, errno(refusal.Errno), conditions); err != nil {
				return fmt.Errorf("%+v: %w", refusal, err)
			}
		}
		return nil
	})
}

func (r Refusal) conditions() ([]libseccomp.ScmpCondition, error) {
	var list []libseccomp.ScmpCondition
	for _, m := range r.Match {
		c, err := libseccomp.MakeCondition(m.Arg, libseccomp.CompareMaskedEqual, m.Mask, m.Value)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// each calls do for the rows whose call this architecture has.
func each(rows []Row, do func(libseccomp.ScmpSyscall, Row) error) error {
	for _, r := range rows {
		nr, err := number(r.Name)
		if errors.Is(err, libseccomp.ErrSyscallDoesNotExist) {
			continue // unknown calls get ENOSYS as it is
		}
		if err == nil {
			err = do(nr, r)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	return nil
}

// number resolves a name. That libseccomp knows a call of other architectures
// shows in a negative number.
func number(name string) (libseccomp.ScmpSyscall, error) {
	nr, err := libseccomp.GetSyscallFromName(name)
	if err == nil && nr >= 0 {
		return nr, nil
	}
	if nr, ok := newer[name]; ok {
		return libseccomp.ScmpSyscall(nr), nil
	}
	if err == nil {
		err = libseccomp.ErrSyscallDoesNotExist
	}
	return 0, err
}

// export goes by a file in memory: libseccomp before 2.6 writes to files only,
// and a pipe might be too short.
func export(f *libseccomp.ScmpFilter) ([]byte, error) {
	fd, err := unix.MemfdCreate("gaol-seccomp", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "gaol-seccomp")
	defer file.Close()
	if err := f.ExportBPF(file); err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(file)
}
