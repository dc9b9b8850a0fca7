package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"gaol/jail/enter"
	"gaol/jail/step"
)

// Container is a container that a runtime has made. Its folder is on a local file system.
type Container struct {
	runtime *Runtime
	program *os.File // the entry program, on the host
	dir, id string
	process *specs.Process // of a user
	limits  []enter.Limit

	started atomic.Int64
}

// Create makes a container and starts its pid 1. dir is absolute and must not exist; the caller removes it
// after the processes have ended, also if Create has failed: the runtime has nothing else to
// delete, as the cgroups are the caller's. User is the user and group id of the processes
// that Start starts.
//
// Preconditions: the thread is in the mount namespace of c's paths.
func (r *Runtime) Create(ctx context.Context, program *os.File, dir, id string, c Config, user uint32) (*Container, *enter.Supervised, error) {
	if !filepath.IsAbs(dir) {
		return nil, nil, step.Wrap("make", dir, errRelative)
	}
	spec, err := c.spec()
	if err != nil {
		return nil, nil, step.Wrap("list", "/proc", err)
	}
	k := &Container{runtime: r, program: program, dir: dir, id: id, process: c.process(user, nil), limits: c.Limits}
	if err := k.writeBundle(spec); err != nil {
		return nil, nil, step.Wrap("write", "bundle", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, step.Wrap("open", os.DevNull, err)
	}
	defer null.Close()
	pid1, err := k.supervise(ctx, "pid 1", []*os.File{null, null, null}, func(pidFile string) []string {
		return r.command(dir, "run", "--detach", "--bundle", filepath.Join(dir, bundleDir), "--pid-file", pidFile, id)
	})
	return k, pid1, err
}

func (k *Container) writeBundle(s *specs.Spec) error {
	err := os.Mkdir(k.dir, 0o700)
	for _, name := range []string{stateDir, bundleDir} {
		if err == nil {
			err = os.Mkdir(filepath.Join(k.dir, name), 0o700)
		}
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(k.dir, bundleDir, configFile), encode(s), 0o600)
}

// supervise executes a command of the runtime that starts a process.
func (k *Container) supervise(ctx context.Context, target string, files []*os.File, command func(pidFile string) []string) (*enter.Supervised, error) {
	pidFile := filepath.Join(k.dir, strconv.FormatInt(k.started.Add(1), 10)+".pid")
	p, err := enter.Supervise(ctx, k.program, enter.Starter{Args: command(pidFile), Files: files, Limits: k.limits, PIDFile: pidFile})
	_ = os.Remove(pidFile) // it does not exist if the runtime failed
	if errors.Is(err, syscall.ECHILD) {
		err = step.Wrap("run "+k.runtime.Path, target, logged(k.dir, errRuntime))
	}
	return p, err
}

var (
	errRelative = errors.New("the folder of a container must be absolute")
	errRuntime  = errors.New("it failed without an error message")
)

// Start starts the entry program in the container, with files and the arguments args, of which
// the first is its name.
func (k *Container) Start(ctx context.Context, files []*os.File, args []string) (*enter.Supervised, error) {
	p := *k.process
	p.Args = append([]string{enter.Path}, args[1:]...)
	process := filepath.Join(k.dir, fmt.Sprintf("process-%d.json", k.started.Add(1)))
	if err := os.WriteFile(process, encode(p), 0o600); err != nil {
		return nil, step.Wrap("write", "process", err)
	}
	defer func() { _ = os.Remove(process) }() // the runtime has read it
	return k.supervise(ctx, enter.Path, files, func(pidFile string) []string {
		return k.runtime.command(k.dir, "exec", "--detach", "--process", process,
			"--pid-file", pidFile, "--preserve-fds", strconv.Itoa(len(files)-3), k.id)
	})
}

// Runtime is an OCI runtime: runc, or a program with its command line.
type Runtime struct {
	// Path is the host path of its program, which root executes.
	Path string

	// SystemdCgroup makes the runtime let systemd make the containers' cgroups.
	SystemdCgroup bool
}

// command returns the arguments of a command of the runtime.
func (r *Runtime) command(dir string, args ...string) []string {
	global := []string{r.Path, "--root", filepath.Join(dir, stateDir), "--log", filepath.Join(dir, logFile), "--log-format", "json"}
	if r.SystemdCgroup {
		global = append(global, "--systemd-cgroup")
	}
	return append(global, args...)
}

// Names in the folder of a container.
const (
	stateDir   = "state"
	bundleDir  = "bundle"
	logFile    = "log"
	configFile = "config.json"
)

// logged returns the last error in a runtime's log, or err if there is none.
func logged(dir string, err error) error {
	text, readErr := os.ReadFile(filepath.Join(dir, logFile))
	if readErr != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	var last struct{ Level, Msg string }
	if json.Unmarshal(lines[len(lines)-1], &last) != nil || last.Msg == "" {
		return err
	}
	const most = 1000
	return errors.New(strings.ToValidUTF8(last.Msg[:min(len(last.Msg), most)], "?"))
}
