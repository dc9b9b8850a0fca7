package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail"
	"gaol/policy"
	"gaol/rootfs"
	"gaol/vfs"
	"gaol/vfs/hostfs"
)

// Snapshot is what a guest's own folders held at a time, in the store. Many runtimes can
// be made of one (Options.Snapshot), each in a moment and without copying it: they share
// its files, and what they change is theirs.
type Snapshot struct {
	ID      string // "sha256:" and 64 hex digits, over names, modes and content
	Names   []string
	Size    int64 // bytes of all files
	Created time.Time
}

// SnapshotOptions say what becomes of a snapshot.
type SnapshotOptions struct {
	// Name is one more name for it, taken from another that has it: lower-case letters,
	// digits and ._- inside it. Empty: it has its ID only.
	Name string

	// Bytes and Entries bound it; an error says what was too much. Zero: 4 GiB and a
	// million. Negative ones are refused.
	Bytes   int64
	Entries int
}

const (
	snapshotBytes   = 4 << 30
	snapshotEntries = 1_000_000
)

// Snapshot puts what is in the home folder, /workspace and Options.Cwd into the store:
// files, folders and links, with modes and times; of mounts in them those by
// CopyOnWrite, as the guest sees them. Not in it are other mounts, the temporary
// folders, what is neither (sockets and pipes are passed over), and what Permissions
// hide. What the guest owns is in it though it took its own right to read from that, as
// by chmod 000; what it does not own, as in a mount by CopyOnWrite, and can't read, is an
// error that names it. Runs may go on meanwhile, but what they change at that time may be
// in it or not; a file that they write to may be in it half.
func (rt *NodeRuntime) Snapshot(ctx context.Context, o SnapshotOptions) (*Snapshot, error) {
	s, err := rt.snapshot(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("gaol: snapshot: %w", err)
	}
	return s, nil
}

// check refuses bounds that can't be.
func (o SnapshotOptions) check() error {
	switch {
	case o.Bytes < 0:
		return fmt.Errorf("option Bytes: %d is negative", o.Bytes)
	case o.Entries < 0:
		return fmt.Errorf("option Entries: %d is negative", o.Entries)
	}
	return nil
}

func (rt *NodeRuntime) snapshot(ctx context.Context, o SnapshotOptions) (*Snapshot, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	store, err := openSnapshots(rt.store)
	if err != nil {
		return nil, err
	}
	var names []string
	if o.Name != "" {
		names = []string{o.Name}
	}
	image, err := store.Add(ctx, names, func(root string) error { return rt.copyOut(ctx, root, o) })
	if err != nil {
		return nil, err
	}
	return snapshotOf(image), nil
}

func snapshotOf(i *rootfs.Image) *Snapshot { return &Snapshot{i.ID, i.Names, i.Size, i.Created} }

// openSnapshots opens those beside the images of a store.
func openSnapshots(store string) (*rootfs.Store, error) {
	s, err := rootfs.Open(store)
	if err != nil {
		return nil, err
	}
	return s.Snapshots()
}

// copyOut copies the guest's own folders. Both sides are confined: the guest's by what
// reads it, the store's as nothing that comes from the guest is trusted.
func (rt *NodeRuntime) copyOut(ctx context.Context, root string, o SnapshotOptions) error {
	dir, err := os.Open(root)
	if err != nil {
		return err
	}
	to, err := hostfs.New(dir, hostfs.Options{Limits: hostfs.Limits{Entries: max(o.Entries, snapshotEntries)}})
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	defer func() { _ = to.Close() }()
	o.Bytes, o.Entries = cmp.Or(o.Bytes, snapshotBytes), cmp.Or(o.Entries, snapshotEntries)
	left := hostfs.TarOptions{Bytes: o.Bytes, Entries: o.Entries, Owned: true, Left: rt.opts.mayMiss}
	for _, m := range rt.opts.mounts {
		if m.Access != CopyOnWrite {
			left.Skip = append(left.Skip, m.Target)
		}
	}
	var bytes int64
	var entries int
	for _, own := range outermost(vfs.Own(rt.opts.cwd)) {
		left.Bytes, left.Entries = max(1, o.Bytes-bytes), max(1, o.Entries-entries) // 0 would be no bound of ours
		report, err := copyFolder(ctx, rt.FS(), to, string(own), left)
		bytes, entries = bytes+report.Bytes, entries+report.Entries
		if err == nil {
			err = o.exceeded(bytes, entries)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", own, err)
		}
	}
	return nil
}

// exceeded tells of a bound that is less than what there is.
func (o SnapshotOptions) exceeded(bytes int64, entries int) error {
	switch {
	case bytes > o.Bytes:
		return &hostfs.LimitError{What: "bytes", Limit: o.Bytes}
	case entries > o.Entries:
		return &hostfs.LimitError{What: "entries", Limit: int64(o.Entries)}
	}
	return nil
}

// mayMiss refuses to take a snapshot without what is to be in it.
func (s settings) mayMiss(left hostfs.Skip) error {
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

// outermost leaves out folders inside others.
func outermost(dirs []vfs.Path) []vfs.Path {
	return slices.DeleteFunc(slices.Clone(dirs), func(d vfs.Path) bool {
		return slices.ContainsFunc(dirs, func(other vfs.Path) bool { return other != d && isIn(string(d), string(other)) })
	})
}

// copyFolder copies what is in a folder of one tree to the same of another.
func copyFolder(ctx context.Context, from, to *hostfs.FS, dir string, o hostfs.TarOptions) (hostfs.TarReport, error) {
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
	if ctx.Err() != nil { // which is why the pipe is closed
		err = context.Cause(ctx)
	}
	if err != nil {
		return report, err
	}
	return report, to.Chmod(dir, info.Mode().Perm())
}

// hold finds a snapshot, and keeps it from being removed while the runtime is open.
func (rt *NodeRuntime) hold(ref string) (root string, err error) {
	snapshots, err := openSnapshots(rt.store)
	if err != nil {
		return "", err
	}
	image, err := snapshots.Lookup(ref)
	if err != nil {
		return "", err
	}
	lease, err := image.Hold()
	if err != nil {
		return "", err
	}
	rt.holds = append(rt.holds, lease)
	return image.Root(), nil
}

// openPackages opens the node_modules that a snapshot has in the working directory, or
// else in /workspace.
func (s settings) openPackages(root string) ([]jail.Mount, error) {
	var err error
	for _, dir := range []vfs.Path{s.cwd, vfs.Workspace} {
		var folder *os.File
		if folder, err = openStored(root, dir.Join(nodeModules)); err == nil {
			return []jail.Mount{{Source: folder, Target: string(s.cwd.Join(nodeModules))}}, nil
		}
	}
	return nil, &os.PathError{Op: "open", Path: string(s.cwd.Join(nodeModules)), Err: err}
}

// openStored opens a folder of a snapshot. Links on the way there are a guest's: they lead
// where they led it, and nowhere else on the host.
func openStored(root string, path vfs.Path) (*os.File, error) {
	dir, err := os.OpenFile(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return jail.OpenIn(dir, string(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
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

// openSnapshot opens those of the guest's own folders that a snapshot has.
func (s settings) openSnapshot(root string) (open []jail.Mount, err error) {
	for _, own := range outermost(vfs.Own(s.cwd)) {
		folder, err := openStored(root, own)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			closeMounts(open)
			return nil, &os.PathError{Op: "open", Path: string(own), Err: err}
		}
		if isEmpty(folder) { // as it is without a mount
			folder.Close()
			continue
		}
		m := jail.Mount{Source: folder, Target: string(own), Access: jail.CopyOnWrite}
		if s.sealed(m.Target) && len(s.changed(m.Target)) == 0 {
			m.Access = ReadOnly
		}
		open = append(open, m)
	}
	return open, nil
}
