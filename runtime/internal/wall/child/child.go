package child

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/internal/ociruntime"
	"gaol/runtime/internal/sandbox/remote"
)

// endTime is how long an agent may take to close its sandbox.
const endTime = 30 * time.Second

// Start starts an agent.
func Start() (*remote.Machine, error) {
	program, err := ociruntime.FindGaol()
	if err != nil {
		return nil, err
	}
	conn, theirs, err := kernfile.SocketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := exec.Command(program, "agent")
	cmd.Stdin, cmd.Stderr = theirs, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a terminal's signals are for the host, which closes the sandbox
	if err := cmd.Start(); err != nil {
		_ = conn.Close() // nothing was written
		return nil, err
	}
	end := func() error {
		late := time.AfterFunc(endTime, func() { _ = cmd.Process.Kill() }) // it may have ended
		defer late.Stop()
		return cmd.Wait()
	}
	return &remote.Machine{Conn: conn, Place: place, End: end}, nil
}

// place returns a path by which the agent opens a file of this process.
func place(f fs.File) (string, error) {
	file, ok := f.(*os.File)
	if !ok {
		return "", fmt.Errorf("child: a file of type %T", f)
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file.Fd()), nil
}
