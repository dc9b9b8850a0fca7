package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"gaol/jail/cgroup"
)

const (
	plainUser   = 1000 // that plain Node runs as
	plainParent = "/gaol-fidelity"
	patience    = 3 * time.Minute // for one run of a test
)

// plain runs tests with plain Node.
type plain struct {
	node, folder string
	limits       cgroup.Limits
	count        atomic.Int64
}

// run runs a test in a separate cgroup, which is killed after it, with an empty /tmp.
func (p *plain) run(ctx context.Context, t nodeTest, worker int) (o outcome, err error) {
	group, err := cgroup.New(fmt.Sprintf("%s/%d", plainParent, p.count.Add(1)), p.limits)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, group.Kill(context.Background()), group.Delete()) }()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	file := filepath.Join(p.folder, "test", t.name)
	join := "for d in " + strings.Join(group.Dirs(), " ") + `; do f=$d/tasks; [ -e "$f" ] || f=$d/cgroup.procs; echo 0 > "$f" || exit 125; done; mount -t tmpfs -o mode=1777 tmpfs /tmp || exit 125; exec setpriv --reuid=$0 --regid=$0 --clear-groups "$@"`
	args := append([]string{"-c", join, fmt.Sprint(plainUser), p.node}, t.flags...)
	cmd := exec.CommandContext(ctx, "/bin/sh", append(args, file)...)
	cmd.Dir = filepath.Dir(file)
	cmd.Env = []string{"PATH=" + filepath.Dir(p.node) + ":/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "USER=node", "LANG=C.UTF-8", "TMPDIR=/tmp", fmt.Sprintf("TEST_THREAD_ID=%d", worker)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Unshareflags: syscall.CLONE_NEWNS} // Go makes the mounts private
	cmd.WaitDelay = 10 * time.Second                                                        // processes of the test may hold its output open
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed && !errors.Is(err, exec.ErrWaitDelay) {
		return o, err
	}
	return judge(cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()), nil
}

// removeParent removes the parent of the tests' cgroups.
func removeParent() error {
	group, err := cgroup.Open(plainParent)
	if err != nil {
		return err
	}
	return group.Delete()
}

// nodeOf is the path of an image's Node on the host.
func nodeOf(root string) (string, error) {
	for _, path := range []string{"usr/local/bin/node", "usr/bin/node"} {
		node := filepath.Join(root, path)
		if _, err := os.Stat(node); err == nil {
			return node, nil
		}
	}
	return "", fmt.Errorf("%s has no Node", root)
}
