package subprocess

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// ErrMemory matches the error of a subprocess that needed more memory than its limit.
var ErrMemory = errors.New("out of memory")

// ExitError reports how a subprocess ended: killed, or by a fault of its own. A fault may be
// the work of hostile bytes.
type ExitError struct {
	Role   string
	Memory bool           // the kernel killed it at the memory limit
	Signal syscall.Signal // that killed it; 0 if it exited
	Code   int            // exit status, if Signal is 0
	Output string         // first line of its standard error; hostile
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("subprocess %s: exit status %d", e.Role, e.Code)
	switch {
	case e.Memory:
		return fmt.Sprintf("subprocess %s: %v", e.Role, ErrMemory)
	case e.Signal != 0:
		text = fmt.Sprintf("subprocess %s: %v", e.Role, e.Signal)
	}
	if e.Output != "" {
		text += fmt.Sprintf(": %q", e.Output)
	}
	return text
}

// Is reports whether target is ErrMemory and the cause was that.
func (e *ExitError) Is(target error) bool { return target == ErrMemory && e.Memory }

// newExitError is called when the process has been reaped, and its cgroup still exists.
func (p *Process) newExitError(state *os.ProcessState, err error) *ExitError {
	e := &ExitError{Role: p.role.Name, Code: -1}
	if err != nil {
		e.Output = err.Error()
		return e
	}
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		e.Signal, e.Code = status.Signal(), 0
	} else {
		e.Code = status.ExitStatus()
	}
	if usage, err := p.group.Usage(); err == nil {
		e.Memory = e.Signal == syscall.SIGKILL && usage.OOMKills > 0
	}
	e.Output, _, _ = strings.Cut(strings.TrimSpace(p.output.String()), "\n")
	return e
}
