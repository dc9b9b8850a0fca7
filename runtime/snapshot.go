package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"gaol/runtime/internal/sandbox"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/rootfs"
	"gaol/vfs"
	"gaol/vfs/hostfs"
)

// Snapshot is a copy of a guest's own folders in the store. Runtimes made from it
// (Options.Snapshot) share its files without copying them, and keep their changes to
// themselves.
type Snapshot struct {
	ID      string // "sha256:" and 64 hex digits, over names, modes and content
	Names   []string
	Size    int64 // bytes of all files
	Created time.Time
}

// SnapshotOptions are the options of Snapshot.
type SnapshotOptions struct {
	// Name is an additional name: lower-case letters and digits, with ._- inside. Another
	// snapshot with the name loses it. Empty: the snapshot has its ID only.
	Name string

	// Bytes and Entries limit its size; beyond them Snapshot fails. Zero: 4 GiB and a million.
	// Negative values are an error.
	Bytes   int64 `bounds:"1B..,4GiB"`
	Entries int   `bounds:"1..,1000000"`
}

// Snapshot copies the home folder, /workspace and Options.Cwd into the store: files, folders
// and links, with modes and times, including CopyOnWrite mounts in them as the guest sees
// them. It does not include other mounts, the temporary folders, special files (sockets and
// pipes are skipped), and what Permissions hide. Files that the guest owns are included even
// if it made them unreadable, for example by chmod 000. Files that it does not own and cannot
// read, as in a CopyOnWrite mount, are an error that names them. Runs may be active: changes
// that they make meanwhile may be included or not, even in part of a file only.
func (rt *NodeRuntime) Snapshot(ctx context.Context, o SnapshotOptions) (_ *Snapshot, err error) {
	defer wrap(&err, "snapshot")
	if err := fill(&o, true); err != nil {
		return nil, err
	}
	store, err := rootfs.OpenSnapshots(rt.store)
	if err != nil {
		return nil, err
	}
	var names []string
	if o.Name != "" {
		names = []string{o.Name}
	}
	i, err := store.Add(ctx, names, func(root string) error { return rt.copyOut(ctx, root, o) })
	if err != nil {
		return nil, err
	}
	return &Snapshot{i.ID, i.Names, i.Size, i.Created}, nil
}

// snapshotFolders returns the folders that a snapshot contains, and that a runtime made from
// it mounts: the guest's own folders, except nested ones.
func snapshotFolders(cwd vfs.Path) []vfs.Path {
	own := vfs.Own(cwd)
	return slices.DeleteFunc(slices.Clone(own), func(dir vfs.Path) bool {
		return slices.ContainsFunc(own, func(other vfs.Path) bool { return other != dir && isIn(dir, other) })
	})
}

// copyOut copies the guest's own folders to root. Both sides are opened by hostfs, so that no
// link of the guest leads out of its tree or out of root.
func (rt *NodeRuntime) copyOut(ctx context.Context, root string, o SnapshotOptions) error {
	dir, err := os.Open(root)
	if err != nil {
		return err
	}
	to, err := hostfs.New(dir, hostfs.Options{Limits: hostfs.Limits{Entries: o.Entries}})
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	defer func() { _ = to.Close() }()
	left := hostfs.TarOptions{Bytes: o.Bytes, Entries: o.Entries, Owned: true, Left: rt.opts.maySkip}
	for _, m := range rt.opts.Mounts {
		if m.Access != CopyOnWrite {
			left.Skip = append(left.Skip, m.Target)
		}
	}
	var bytes int64
	var entries int
	for _, own := range snapshotFolders(rt.opts.cwd) {
		// Several folders share one limit.
		left.Bytes, left.Entries = max(1, o.Bytes-bytes), max(1, o.Entries-entries) // 0 would be hostfs's default
		report, err := copyFolder(ctx, rt.FS(), to, string(own), left)
		bytes, entries = bytes+report.Bytes, entries+report.Entries
		switch {
		case err != nil:
		case bytes > o.Bytes:
			err = &hostfs.LimitError{What: "bytes", Limit: o.Bytes}
		case entries > o.Entries:
			err = &hostfs.LimitError{What: "entries", Limit: int64(o.Entries)}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", own, err)
		}
	}
	return nil
}

// maySkip returns an error if a snapshot without the entry would be incomplete.
func (s settings) maySkip(left hostfs.Skip) error {
	switch {
	case errors.Is(left.Err, hostfs.ErrSpecial), errors.Is(left.Err, hostfs.ErrChanged):
		return nil
	case errors.Is(left.Err, fs.ErrPermission) && s.plan.Hides(policy.Place{Path: left.Path}):
		return nil
	case errors.Is(left.Err, fs.ErrPermission):
		return fmt.Errorf("%s is not the guest's, which can't read it: %w; let all read it on the host, or remove it", left.Path, left.Err)
	}
	return fmt.Errorf("%s can't be in it: %w; remove it, or give it another name", left.Path, left.Err)
}

// copyFolder copies the contents of a folder from one tree to another, as a tar stream: that
// keeps modes, times and links, and both sides check each path. The side that fails closes the
// pipe, so that the other one returns, and its error is the one reported.
func copyFolder(ctx context.Context, from, to hostfs.Files, dir string, o hostfs.TarOptions) (hostfs.TarReport, error) {
	info, err := from.Stat(dir)
	if err != nil {
		return hostfs.TarReport{}, err
	}
	if err := to.MkdirAll(dir, 0o755); err != nil {
		return hostfs.TarReport{}, err
	}
	r, w := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = r.CloseWithError(context.Cause(ctx)) })
	defer stop()
	unpacked := make(chan error, 1)
	go func() {
		_, err := to.Untar(r, dir, hostfs.UntarOptions{Bytes: o.Bytes, Entries: o.Entries})
		_ = r.CloseWithError(errors.Join(err, io.ErrClosedPipe))
		unpacked <- err
	}()
	report, err := from.Tar(w, dir, o)
	_ = w.CloseWithError(err)
	if failed := <-unpacked; failed != nil && !errors.Is(failed, err) {
		err = failed
	}
	if ctx.Err() != nil { // which closed the pipe
		err = context.Cause(ctx)
	}
	if err != nil {
		return report, err
	}
	return report, to.Chmod(dir, info.Mode().Perm())
}

// lease returns a snapshot, which cannot be removed while the runtime is open.
func (rt *NodeRuntime) lease(ref string) (*rootfs.Image, error) {
	snapshots, err := rootfs.OpenSnapshots(rt.store)
	if err != nil {
		return nil, err
	}
	image, err := snapshots.Lookup(ref)
	if err != nil {
		return nil, err
	}
	return image, rt.hold(image)
}

// openPackages adds the node_modules of a snapshot, in the working directory or else in
// /workspace.
func (rt *NodeRuntime) openPackages(spec *sandbox.Spec) error {
	image, err := rt.lease(rt.opts.packages)
	if err != nil {
		return err
	}
	target := string(rt.opts.modules)
	for _, dir := range []vfs.Path{rt.opts.cwd, vfs.Workspace} {
		var folder *os.File
		if folder, err = image.OpenFolder(string(dir.Join(nodeModules))); err == nil {
			spec.Mounts = append(spec.Mounts, sandbox.Mount{Source: folder, Target: target})
			return nil
		}
	}
	return &os.PathError{Op: "open", Path: target, Err: err}
}

// openSnapshot adds the folders of a snapshot.
func (rt *NodeRuntime) openSnapshot(spec *sandbox.Spec) error {
	image, err := rt.lease(rt.opts.Snapshot)
	if err != nil {
		return err
	}
	for _, own := range snapshotFolders(rt.opts.cwd) {
		folder, err := image.OpenFolder(string(own))
		switch {
		case errors.Is(err, unix.ENOENT):
		case err != nil:
			return &os.PathError{Op: "open", Path: string(own), Err: err}
		case isEmpty(folder): // as without a mount
			folder.Close()
		default:
			m := Mount{Target: string(own), Access: CopyOnWrite}
			spec.Mounts = append(spec.Mounts, sandbox.Mount{Source: folder, Target: m.Target, Access: rt.opts.access(m)})
		}
	}
	return nil
}

func isEmpty(dir *os.File) bool {
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}
