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

// child is something to try in a process of its own, in namespaces of its own.
// Its text is the name the process bears, so that one sees in ps what it is.
type child string

const (
	childNothing child = "gaol-doctor: namespace"
	childTmpfs   child = "gaol-doctor: tmpfs"
	childOverlay child = "gaol-doctor: overlayfs"
)

// trials are what the children do once they are in their namespaces.
var trials = map[child]func() error{
	childNothing: func() error { return nil },
	childTmpfs:   tryTmpfs,
	childOverlay: tryOverlay,
}

// patience is more than any trial takes: one that hangs is a finding.
const patience = 10 * time.Second

func init() {
	// Here and not in main, so that test binaries work the same way. A name with
	// a blank and a colon is nothing that one executes by accident.
	if len(os.Args) != 1 {
		return
	}
	trial, found := trials[child(os.Args[0])]
	if !found {
		return
	}
	if err := trial(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// try runs the trial in new namespaces. Without root, a user namespace gives
// the right to make the others.
func (x *examination) try(c child, flags uintptr) error {
	ctx, cancel := context.WithTimeout(x.ctx, patience)
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
