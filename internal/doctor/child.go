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

// children are tests that run in their own processes and namespaces, by the names of these
// processes, so that ps shows their purpose.
var children = map[string]func() error{
	"gaol-doctor: namespace": func() error { return nil },
	"gaol-doctor: tmpfs":     tryTmpfs,
	"gaol-doctor: overlayfs": tryOverlay,
}

// childTimeout is longer than any test takes: a child that hangs is a finding.
const childTimeout = 10 * time.Second

func init() {
	// In init and not in main, so that test binaries work the same way. A name with a
	// blank and a colon is not executed by accident.
	if len(os.Args) != 1 {
		return
	}
	run, found := children[os.Args[0]]
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
func (x *examination) runChild(name string, flags uintptr) error {
	ctx, cancel := context.WithTimeout(x.ctx, childTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{"gaol-doctor: " + name}
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
