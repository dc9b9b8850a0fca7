package sandboxtools

import (
	"context"
	"crypto/rand"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gaol/runtime"
	"gaol/vfs"
)

// Init is sandbox_init: it makes a sandbox.
func (t *Toolbox) Init(ctx context.Context, a InitArgs) (InitResult, error) {
	return invoke(ctx, "sandbox_init", a, t.init)
}

func (t *Toolbox) init(ctx context.Context, a InitArgs) (InitResult, error) {
	root, err := rootOf(a.RootPath)
	if err != nil {
		return InitResult{}, err
	}
	if a.ContainerID == "" {
		a.ContainerID = strings.ToLower(rand.Text())
	}
	s := newSandbox(a.ContainerID, root)
	if err := t.reserve(s); err != nil {
		s.stop()
		return InitResult{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.closing, cancel)()
	rt, result, err := t.make(ctx, s, a)
	if err != nil {
		t.drop(s)
		if t.closing.Err() != nil {
			err = &Error{Code: Closed, Err: errClosed}
		}
		return InitResult{}, err
	}
	return result, t.publish(s, rt)
}

// make creates the runtime of a sandbox.
func (t *Toolbox) make(ctx context.Context, s *sandbox, a InitArgs) (*runtime.NodeRuntime, InitResult, error) {
	o := t.o.Create
	o.Cwd, o.Hostname = string(s.root), hostName(a.ContainerName)
	result := InitResult{
		ContainerID: s.id, ContainerName: a.ContainerName, HostName: o.Hostname, ImageName: a.ImageName, RootPath: string(s.root),
	}
	if a.ImageName != "" {
		image, err := t.image(ctx, a.ImageName)
		if err != nil {
			return nil, result, err
		}
		o.Image = image.ID
		if image.CanFork() != nil {
			o.Launcher, o.Zygote = runtime.LauncherExec, runtime.ZygoteOptions{}
		}
	}
	if a.ProjectOutPath != "" {
		folder, err := t.project(a.ProjectOutPath)
		if err != nil {
			return nil, result, err
		}
		defer folder.Close()
		result.ProjectOutPath = folder.Name()
		// By its descriptor: the name may lead elsewhere by now.
		source := fmt.Sprintf("/proc/self/fd/%d", folder.Fd())
		o.Mounts = append(slices.Clone(o.Mounts), runtime.Mount{Source: source, Target: o.Cwd, Access: runtime.ReadWrite})
	}
	rt, err := runtime.Create(ctx, o)
	if err != nil && CodeOf(inTool("", err)) != Canceled && CodeOf(inTool("", err)) != Timeout {
		err = &Error{Code: Internal, Err: err} // what is missing then is the host's
	}
	return rt, result, err
}

// taken are folders of the guest's root that it can't work in.
var taken = []string{"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "root", "run", "sbin", "sys", "usr"}

// rootOf gives the folder that rootPath means.
func rootOf(rootPath string) (vfs.Path, error) {
	top, _, _ := strings.Cut(rootPath, "/")
	if slices.Contains(taken, top) {
		return "", refuse(InvalidArgument, "rootPath", "/%s is the system's", top)
	}
	root, err := vfs.ParsePath("/" + rootPath)
	if err != nil {
		return "", &Error{Code: InvalidArgument, Place: "rootPath", Err: err}
	}
	return root, nil
}

var hostNamePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

// defaultHostName is the runtime's own.
const defaultHostName = "secure-exec"

// hostName is a container's name where it can be a host's.
func hostName(name string) string {
	if !hostNamePattern.MatchString(name) {
		return defaultHostName
	}
	return name
}

// Destroy is sandbox_destroy. It returns when nothing is left of the sandbox.
func (t *Toolbox) Destroy(ctx context.Context, a DestroyArgs) (DestroyResult, error) {
	return invoke(ctx, "sandbox_destroy", a, t.destroy)
}

func (t *Toolbox) destroy(_ context.Context, a DestroyArgs) (DestroyResult, error) {
	t.mu.Lock()
	s, err := t.find(a.ContainerID)
	if err != nil {
		t.mu.Unlock()
		return DestroyResult{}, err
	}
	result := DestroyResult{ContainerID: s.id, Removed: *a.RemoveContainer}
	if !result.Removed {
		s.state = stopped
		t.mu.Unlock()
		s.stop()
		return result, nil
	}
	done := t.startEnd(s)
	t.mu.Unlock()
	<-done
	if err := s.rt.Close(); err != nil { // what the first Close returned
		return DestroyResult{}, &Error{Code: Internal, Err: err}
	}
	return result, nil
}
