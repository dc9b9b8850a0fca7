package jail

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
	"syscall"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gaol/jail/enter"
	"gaol/jail/mounts"
	"gaol/jail/step"
)

// create makes the container and starts its pid 1. namespaces are open. The runtime has nothing to
// delete: the cgroups and the folder are the jail's.
//
// Preconditions: the thread is in the mount namespace of the tree.
func (j *container) create(ctx context.Context, namespaces map[specs.LinuxNamespaceType]*os.File) (*enter.Supervised, error) {
	spec, err := j.config(namespaces)
	if err != nil {
		return nil, err
	}
	dir := j.identity.containerDir()
	if !filepath.IsAbs(dir) {
		return nil, step.Wrap("make", dir, errRelative)
	}
	bundle := filepath.Join(dir, "bundle")
	for _, d := range []string{dir, filepath.Join(dir, containerState), bundle} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, step.Wrap("make", d, err)
		}
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), encode(spec), 0o600); err != nil {
		return nil, step.Wrap("write", "bundle", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, step.Wrap("open", os.DevNull, err)
	}
	defer null.Close()
	return j.supervise(ctx, "pid 1", []*os.File{null, null, null}, "run", "--detach", "--bundle", bundle)
}

// coreLimit is set for the runtime itself, whose children inherit it: it could set it in a user
// namespace of another user only with CAP_SYS_RESOURCE.
var coreLimit = enter.Limit{Resource: unix.RLIMIT_CORE, Most: maxCore}

// supervise executes a command of the runtime, with further arguments, that starts a process.
func (j *container) supervise(ctx context.Context, target string, files []*os.File, args ...string) (*enter.Supervised, error) {
	dir := j.identity.containerDir()
	pidFile := filepath.Join(dir, strconv.FormatInt(j.started.Add(1), 10)+".pid")
	args = append(j.spec.OCI.command(dir, args...), "--pid-file", pidFile, "gaol-"+j.identity.name())
	p, err := enter.Supervise(ctx, j.program, enter.Starter{Args: args, Files: files, Limits: []enter.Limit{coreLimit}, PIDFile: pidFile})
	_ = os.Remove(pidFile) // it does not exist if the runtime failed
	if errors.Is(err, syscall.ECHILD) {
		err = step.Wrap("run "+j.spec.OCI.Path, target, logged(dir, errRuntime))
	}
	return p, err
}

var (
	errRelative = errors.New("the folder of a container must be absolute")
	errRuntime  = errors.New("it failed without an error message")
)

// enter starts the entry program in the container, with files and the arguments args, of which
// the first is its name.
func (j *container) enter(ctx context.Context, files []*os.File, args []string) (*enter.Supervised, error) {
	p := containerProcess(mounts.GuestUID, append([]string{enter.Path}, args[1:]...))
	process := filepath.Join(j.identity.containerDir(), fmt.Sprintf("process-%d.json", j.started.Add(1)))
	if err := os.WriteFile(process, encode(p), 0o600); err != nil {
		return nil, step.Wrap("write", "process", err)
	}
	defer func() { _ = os.Remove(process) }() // the runtime has read it
	return j.supervise(ctx, enter.Path, files, "exec", "--detach", "--process", process, "--preserve-fds", strconv.Itoa(len(files)-3))
}

// OCIRuntime is an OCI runtime: runc, or a program with its command line.
type OCIRuntime struct {
	// Path is the host path of its program, which root executes.
	Path string

	// SystemdCgroup makes the runtime let systemd make the containers' cgroups.
	SystemdCgroup bool
}

// command returns the arguments of a command of the runtime.
func (r *OCIRuntime) command(dir string, args ...string) []string {
	global := []string{r.Path, "--root", filepath.Join(dir, containerState), "--log", filepath.Join(dir, logFile), "--log-format", "json"}
	if r.SystemdCgroup {
		global = append(global, "--systemd-cgroup")
	}
	return append(global, args...)
}

// Names in the folder of a container.
const (
	containerState = "state"
	logFile        = "log"
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
