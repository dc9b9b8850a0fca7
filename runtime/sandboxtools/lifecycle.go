package sandboxtools

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/internal/lazyregexp"
	"gaol/jail/mounts"
	"gaol/rootfs"
	"gaol/rootfs/registry"
	"gaol/runtime"
	"gaol/vfs"
)

// init implements sandbox_init: it creates a sandbox.
func (t *Toolbox) init(ctx context.Context, a *InitArgs) (InitResult, error) {
	rootPath := cmp.Or(a.RootPath, "workspace")
	if top, _, _ := strings.Cut(rootPath, "/"); slices.Contains(systemFolders, top) {
		return InitResult{}, refuse(InvalidArgument, "rootPath", "/%s is a system folder", top)
	}
	root, err := vfs.ParsePath("/" + rootPath)
	if err != nil {
		return InitResult{}, &Error{Code: InvalidArgument, Place: "rootPath", Err: err}
	}
	s := &sandbox{toolbox: t, id: cmp.Or(a.ContainerID, strings.ToLower(rand.Text())), root: root}
	if err := t.reserve(s.id); err != nil {
		return InitResult{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.closing, cancel)()
	result, err := s.create(ctx, a)
	return result, t.publish(s, err)
}

// create creates the runtime of a sandbox.
func (s *sandbox) create(ctx context.Context, a *InitArgs) (InitResult, error) {
	t := s.toolbox
	o := t.o.Create
	o.Cwd, o.Hostname = string(s.root), a.ContainerName
	if !hostNamePattern().MatchString(o.Hostname) {
		o.Hostname = "secure-exec" // the default of package runtime
	}
	result := InitResult{
		ContainerID: s.id, ContainerName: a.ContainerName, HostName: o.Hostname, ImageName: a.ImageName, RootPath: string(s.root),
	}
	if a.ImageName != "" {
		image, err := t.image(ctx, a.ImageName)
		if err != nil {
			return result, err
		}
		o.Image = image.ID
		if o.Launcher.Supports(image) != nil {
			o.Launcher, o.Zygote = runtime.LauncherExec, runtime.ZygoteOptions{}
		}
	}
	if a.ProjectOutPath != "" {
		folder, err := t.project(a.ProjectOutPath)
		if err != nil {
			return result, err
		}
		defer folder.Close()
		result.ProjectOutPath = filepath.Join(t.o.ProjectBase, folder.Name())
		// Mount by descriptor: the path may lead elsewhere by now.
		source := fmt.Sprintf("/proc/self/fd/%d", folder.Fd())
		o.Mounts = append(slices.Clone(o.Mounts), runtime.Mount{Source: source, Target: o.Cwd, Access: runtime.ReadWrite})
	}
	var err error
	s.Sandbox, err = t.o.Open(ctx, o)
	if _, refused := errors.AsType[*Error](err); err != nil && !refused && findCode(codes, err) == "" {
		err = &Error{Code: Internal, Err: err} // a missing file, for example, is the host's
	}
	return result, err
}

// systemFolders are top-level folders that can't be the working directory.
var systemFolders = []string{"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "root", "run", "sbin", "sys", "usr"}

var hostNamePattern = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

// destroy implements sandbox_destroy. It returns when the sandbox is closed.
func (s *sandbox) destroy(_ context.Context, a *DestroyArgs) (DestroyResult, error) {
	t := s.toolbox
	t.mu.Lock()
	if t.sandboxes[s.id] != s {
		t.mu.Unlock()
		return DestroyResult{}, refuse(Closed, "containerId", "sandbox %q is being destroyed by another call", s.id)
	}
	result := DestroyResult{ContainerID: s.id, Removed: a.RemoveContainer == nil || *a.RemoveContainer}
	if !result.Removed {
		t.mu.Unlock()
		s.stop()
		return result, nil
	}
	done := t.startClose(s)
	t.mu.Unlock()
	if err := <-done; err != nil {
		return DestroyResult{}, &Error{Code: Internal, Err: err}
	}
	return result, nil
}

// projectFlags open a folder as a handle only: nothing in it is read or changed.
const projectFlags = unix.O_PATH | unix.O_DIRECTORY

// project opens the folder of a projectOutPath, and creates missing folders. The name of
// the file is its path below the base. The caller must close it.
func (t *Toolbox) project(path string) (*os.File, error) {
	const place = "projectOutPath"
	if t.base == nil {
		return nil, refuse(Permission, place, "no folder of the host can be shared: Options.ProjectBase is empty")
	}
	inside := filepath.Clean(path) // resolves ".." lexically; any that remains leads out of the base
	if filepath.IsAbs(path) {
		inside, _ = filepath.Rel(t.o.ProjectBase, path) // both are absolute
	}
	if inside == "." || !filepath.IsLocal(inside) {
		return nil, refuse(Permission, place, "not below the folder for projects")
	}
	folder, err := t.mkdirBelow(inside)
	switch {
	case errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV):
		return nil, refuse(Permission, place, "contains a link: %w", err)
	case errors.Is(err, unix.ENOTDIR):
		return nil, refuse(NotDirectory, place, "contains a file: %w", err)
	case errors.Is(err, unix.ENAMETOOLONG):
		return nil, &Error{Code: InvalidArgument, Place: place, Err: err}
	case err != nil:
		return nil, &Error{Code: Internal, Place: place, Err: err}
	}
	return folder, nil
}

// mkdirBelow opens a folder below the base, and creates missing folders with mode 0755. It
// follows no link, as a guest may have created it. os.Root would follow those that stay
// below the base, into the folders of other guests.
func (t *Toolbox) mkdirBelow(path string) (*os.File, error) {
	folder, err := mounts.OpenBeneath(t.base, path, projectFlags)
	if err != unix.ENOENT || path == "." {
		return folder, err
	}
	parent, err := t.mkdirBelow(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if err := unix.Mkdirat(int(parent.Fd()), filepath.Base(path), 0o755); err != nil && err != unix.EEXIST {
		return nil, err
	}
	return mounts.OpenBeneath(t.base, path, projectFlags)
}

// image finds the image with a name. A source that Options.Images lists is imported if the
// store lacks it. No other name that a caller passes leads to a registry or a file.
func (t *Toolbox) image(ctx context.Context, name string) (*rootfs.Image, error) {
	source, listed := t.o.Images[name]
	if !listed && t.o.Images != nil && name != t.o.Create.Image {
		return nil, refuse(Permission, "imageName", "image %.128q is not allowed: list it in Options.Images", name)
	}
	store, err := rootfs.Open(t.o.Create.Store)
	if err != nil {
		return nil, err
	}
	var image *rootfs.Image
	if source == "" {
		image, err = store.Lookup(name)
	} else {
		image, err = t.importOnce(ctx, store, source)
	}
	switch {
	case err == nil:
		return image, nil
	case source == "" && errors.Is(err, rootfs.ErrNotFound):
		return nil, refuse(NotFound, "imageName", "image %.128q: %w: list it in Options.Images, or import it with gaol image import", name, rootfs.ErrNotFound)
	}
	return nil, &Error{Code: cmp.Or(findCode(codes, err), findCode(imageCodes, err), Internal), Place: "imageName", Err: err}
}

// imageCodes apply to errors of the store and of an import.
var imageCodes = []codeCauses{
	{NotFound, []error{rootfs.ErrNotFound, rootfs.ErrNoImage}},
	{InvalidArgument, []error{rootfs.ErrAmbiguous}},
	{Unauthorized, []error{rootfs.ErrUnauthorized}},
	{Permission, []error{rootfs.ErrInsecure}},
	{Limit, []error{rootfs.ErrTooLarge}},
	{BadImage, []error{rootfs.ErrPlatform, rootfs.ErrDigest, rootfs.ErrTruncated, rootfs.ErrMalformed, rootfs.ErrRefused}},
}

// importOnce returns the image of a source, and imports it on first use. It imports one
// source at a time, so that concurrent callers do not import the same one twice.
func (t *Toolbox) importOnce(ctx context.Context, store *rootfs.Store, source string) (*rootfs.Image, error) {
	name := fmt.Sprintf("pulled-%x", sha256.Sum256([]byte(source))) // the source may contain characters that names cannot
	image, err := store.Lookup(name)
	if !errors.Is(err, rootfs.ErrNotFound) {
		return image, err
	}
	select {
	case t.imports <- struct{}{}:
		defer func() { <-t.imports }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	image, err = store.Lookup(name)
	if errors.Is(err, rootfs.ErrNotFound) {
		image, err = store.Import(ctx, source, rootfs.ImportOptions{Name: name, Registry: registry.Client{}})
	}
	return image, err
}
