package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/chroot"
)

// child is a test that runs in its own process and namespaces. Its text is that process's
// name, so that ps shows its purpose.
type child string

const (
	childNothing child = "gaol-doctor: namespace"
	childTmpfs   child = "gaol-doctor: tmpfs"
	childOverlay child = "gaol-doctor: overlayfs"
)

// childFuncs are run by the children in their namespaces.
var childFuncs = map[child]func() error{
	childNothing: func() error { return nil },
	childTmpfs:   tryTmpfs,
	childOverlay: tryOverlay,
}

// childTimeout is longer than any test takes: a child that hangs is a finding.
const childTimeout = 10 * time.Second

func init() {
	// In init and not in main, so that test binaries work the same way. A name with a
	// blank and a colon is not executed by accident.
	if len(os.Args) != 1 {
		return
	}
	run, found := childFuncs[child(os.Args[0])]
	if !found {
		return
	}
	if err := run(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runChild runs a test in new namespaces. Without root it also creates a user namespace,
// which grants the right to create the others.
func (x *examination) runChild(c child, flags uintptr) error {
	ctx, cancel := context.WithTimeout(x.ctx, childTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{string(c)}
	cmd.Env = []string{}
	cmd.WaitDelay = time.Second
	if !x.root {
		flags |= unix.CLONE_NEWUSER
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	if flags&unix.CLONE_NEWUSER != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	run := cmd.Run
	if x.chroot {
		run = func() error { return chroot.Run(cmd.Run) }
	}
	err := run()
	if text := strings.TrimSpace(out.String()); err != nil && text != "" {
		return errors.New(text)
	}
	return err
}
