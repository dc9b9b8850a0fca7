package mounts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/kernel"
	"gaol/jail/procfs"
	"gaol/jail/step"
)

// Names in the staging tmpfs, where the thread's working directory is. The overlay gets
// them as relative paths: the guest can read its mount options, which so have no path of
// the host.
const (
	Root = "root" // the guest's root
	Proc = "proc" // files to mount over the jail's /proc

	imageDir   = "image"
	layerDir   = "layer"
	upperDir   = "upper"
	workDir    = "work"
	overlayDir = "tree"
	hiddenDir  = "blank"  // empty files and folders that hide places
	shownDir   = "kept"   // mounts of shown places, which are then mounted in hidden ones
	sourcesDir = "copies" // the layers of overlays over host folders
	commandDir = "commands"
	programDir = "programs"
	fillDir    = "fill" // files that take what exceeds the limits of a disk

	layers = "lowerdir=" + layerDir + ":" + imageDir // of an overlay
)

// Stage is a tree that is being mounted.
type Stage struct {
	tree   Tree
	rootID int // host id of the guest's root
	clones *clones

	// Commands and Programs are the folders of commands and of programs, which Mount makes and the
	// caller closes, also if it fails. Both may be nil.
	Commands, Programs *HostDir

	// Disk is the file system of the tree if that is on disk, or nil. Mount sets it, and the caller calls DiscardDisk, also
	// if Mount fails.
	Disk *os.File

	// Changes is the upper folder of the overlay, with Tree.OneOverlay. Mount opens it, and the caller closes it.
	Changes *os.File
}

func (s *Stage) guestUID() int { return s.rootID + GuestUID }
func (s *Stage) guestGID() int { return s.rootID + GuestGID }

// Prepare starts to clone the mounts of a tree, in the mount namespace of this process.
// firstID is the host's user and group id of the guest's root.
func Prepare(t Tree, firstID int) *Stage {
	t.Mounts = slices.Clone(t.Mounts) // outer ones come first
	slices.SortStableFunc(t.Mounts, func(a, b Mount) int { return strings.Compare(a.Target, b.Target) })
	return &Stage{tree: t, rootID: firstID, clones: &clones{
		image:   begin(func() (imageClone, error) { return cloneImage(t.Image, firstID, t.Owned) }),
		sources: begin(func() ([]*os.File, error) { return cloneSources(t.Protected, t.Mounts, firstID) }),
		disk:    begin(func() (*os.File, error) { return makeDisk(t) }),
	}}
}

// Close closes the cloned mounts. What Mount mounted stays.
func (s *Stage) Close() { s.clones.close() }

// Open makes a mount namespace for the thread, with the stage at dir, which becomes the working
// directory, and sets the thread's umask to 0. The host does not see the namespace's mounts.
//
// Preconditions: the thread is locked to its goroutine, is not the main thread of the
// process, and ends with the goroutine or leaves the mount namespace.
func (s *Stage) Open(dir string) error {
	return run(openStage(dir, s.mountBase), []action{
		{"mount", s.tree.Image, s.clones.mountImage},
		{"write", "layer", s.writeLayer},
	})
}

// Mount mounts the tree, without /proc, at Root.
//
// Preconditions: Open has succeeded on this thread.
func (s *Stage) Mount() error {
	return run([]action{
		{"make", "mount points", s.makeMountPoints},
		{"make", "guest folders", s.makeGuestDirs},
		{"open", "changes", s.openChanges},
		{"mount", "overlay", s.mountLayers},
		{"mount", "commands", s.mountCommands},
		{"mount", ProgramDir, s.mountPrograms},
		{"fill", "root", s.fillRoot},
		{"mount", "/dev", s.mountDev},
		{"write", "/proc", s.writeProc},
		{"mount", "folders of the host", s.mountSources},
		{"restrict", "places", s.restrict},
		{"limit", "files", s.limit},
	})
}

// stageBytes are enough for the stage's own files.
const stageBytes = 8 << 20

// mountBase mounts the file system of the stage.
func (s *Stage) mountBase(dir string) (err error) {
	if s.tree.DiskDir == "" {
		options := "mode=0755"
		if kernel.Probe().Lacks(kernel.GroupLimits) { // gVisor ignores the size of limit
			options += fmt.Sprintf(",size=%d", stageBytes+s.tree.Disk)
		}
		return unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
	}
	disk, err := s.clones.disk()
	if err == nil {
		err = attach(disk, unix.AT_FDCWD, dir)
	}
	if err == nil {
		s.Disk, err = kernfile.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	}
	return err
}

// mountLayers mounts the overlay.
func (s *Stage) mountLayers() error {
	options := layers + ",upperdir=" + upperDir + ",workdir=" + workDir
	if s.tree.OneOverlay { // files in the upper folder are complete
		options += ",redirect_dir=off,metacopy=off"
	}
	return mountOverlay(overlayDir, 0, options)
}

// EnterImage makes an overlay of files of the host's root over an image the root directory of
// this thread, read-only, and unmounts the rest of the host's tree. dir is as for
// [Stage.Open].
//
// Preconditions: see [Stage.Open]. The thread must end with its goroutine.
func EnterImage(dir, image string, files []File) error {
	s := &Stage{tree: Tree{Layer: files}}
	return run(openStage(dir, s.mountBase), []action{
		{"mount", image, func() error { return unix.Mount(image, imageDir, "", unix.MS_BIND, "") }},
		{"write", "layer", s.writeLayer},
		{"mount", "overlay", func() error { return mountOverlay(Root, unix.MS_RDONLY, layers) }},
		{"chdir", Root, func() error { return unix.Chdir(Root) }},
		{"pivot", "root", PivotRoot},
	})
}

// action is a step of mounting a tree.
type action struct {
	name, target string
	do           func() error
}

// run does all actions, in this order, until one fails.
func run(lists ...[]action) error {
	for _, a := range slices.Concat(lists...) {
		if err := a.do(); err != nil {
			return &step.Error{Step: a.name, Target: a.target, Err: err}
		}
	}
	return nil
}

// openStage moves the thread to a new mount namespace, with an empty file system at dir.
func openStage(dir string, mount func(dir string) error) []action {
	return append(newNamespace(), []action{
		{"mount", "stage", func() error { return mount(dir) }},
		{"chdir", dir, func() error { return unix.Chdir(dir) }},
		{"make", "folders", makeStageDirs},
	}...)
}

// Unshare moves this thread to a new mount namespace, in which it sees the host's mounts and the host does not see
// its own.
//
// Preconditions: see [Stage.Open].
func Unshare() error { return run(newNamespace()) }

func newNamespace() []action {
	return []action{
		{"unshare", "mount namespace", unshare},
		{"leave", "chroot", LeaveChroot},
		// Slave, not private: a disk that the host unmounts must not stay busy here.
		{"mount", "/", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "") }},
	}
}

// unshare gives the thread its own mounts, and, by CLONE_FS, its own working directory and umask.
func unshare() error { return unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS) }

// limit limits the file system of the stage to its current size plus the guest's quota.
func (s *Stage) limit() error {
	flags := uintptr(unix.MS_REMOUNT | unix.MS_NOSUID | unix.MS_NODEV)
	if s.tree.noExec("/") {
		flags |= unix.MS_NOEXEC // of the mount that becomes the guest's root
	}
	if s.Disk != nil {
		return errors.Join(s.limitDisk(), unix.Mount("", ".", "", flags|unix.MS_BIND, ""))
	}
	var now unix.Statfs_t
	if err := unix.Statfs(".", &now); err != nil {
		return err
	}
	bytes, inodes := int64(now.Blocks-now.Bfree)*now.Bsize, int64(now.Files-now.Ffree)
	data := fmt.Sprintf("size=%d,nr_inodes=%d,mode=0755", bytes+s.tree.Disk, inodes+s.tree.Inodes)
	if err := unix.Mount("", ".", "", flags, data); err != nil || !kernel.Probe().Lacks(kernel.GroupLimits) {
		return err
	}
	return fill(s.tree.Disk)
}

// fill leaves a number of bytes free in the file system of the stage, whose size this kernel does not change.
func fill(bytes int64) error {
	free, err := freeSpace(".")
	if err != nil || free.bytes <= bytes {
		return err
	}
	f, err := os.Create(fillDir)
	if err != nil {
		return err
	}
	err = unix.EINTR
	for err == unix.EINTR { // signals of Go's scheduler
		err = unix.Fallocate(int(f.Fd()), 0, 0, free.bytes-bytes)
	}
	return errors.Join(os.NewSyscallError("fallocate", err), f.Close())
}

func makeStageDirs() error {
	unix.Umask(0) // files created here have the requested mode, whatever the host's umask
	for _, dir := range []string{Root, Proc, imageDir, layerDir, upperDir, workDir, overlayDir, hiddenDir, shownDir, sourcesDir, commandDir, programDir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// writeLayer writes the layer's files, which belong to the guest's root.
func (s *Stage) writeLayer() error {
	for _, f := range s.tree.Layer {
		path := filepath.Join(layerDir, f.Path)
		if err := mkdirAll(filepath.Dir(path), 0o755, s.rootID); err != nil {
			return err
		}
		var err error
		if f.Mode&os.ModeSymlink != 0 {
			err = os.Symlink(string(f.Data), path)
		} else {
			err = os.WriteFile(path, f.Data, f.Mode)
		}
		if err := errors.Join(err, os.Lchown(path, s.rootID, s.rootID)); err != nil {
			return err
		}
	}
	return nil
}

// mountOverlay mounts an overlay of folders of the stage. Some kernels, such as gVisor's, need absolute paths, and never redirect.
func mountOverlay(target string, flags uintptr, options string) error {
	flags |= unix.MS_NOSUID | unix.MS_NODEV
	err := unix.Mount("overlay", target, "overlay", flags, options)
	if err == unix.EINVAL {
		dir, _ := unix.Getwd() // fails again without it
		err = unix.Mount("overlay", target, "overlay", flags, withAbsolute(strings.TrimSuffix(options, redirects), dir+"/"))
	}
	return os.NewSyscallError("mount", err)
}

// redirects is the last option of an overlay in which folders of a lower layer can be renamed.
const redirects = ",redirect_dir=on"

// withAbsolute puts a folder before the paths in options of an overlay.
func withAbsolute(options, dir string) string {
	return strings.NewReplacer("erdir=", "erdir="+dir, "workdir=", "workdir="+dir, ":", ":"+dir).Replace(options)
}

// writeProc writes the files at Proc and makes them a read-only mount, as are all mounts
// that are made from it.
func (s *Stage) writeProc() error {
	if err := procfs.Write(Proc, s.tree.Proc); err != nil {
		return err
	}
	return bindWithFlags(Proc, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOEXEC})
}

// bind mounts a file or folder, with the mounts below it, at a path.
func bind(source, path string) error {
	if err := unix.Mount(source, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return &os.PathError{Op: "mount", Path: path, Err: err}
	}
	return nil
}

// bindWithFlags mounts a folder on itself, with other flags.
func bindWithFlags(path string, attr unix.MountAttr) error {
	if err := bind(path, path); err != nil {
		return err
	}
	return setMountAttr(unix.AT_FDCWD, path, 0, attr)
}

// OpenProgram opens a program of the image that runs with the host's rights, with flags of open(2). It must
// be a regular file that only the host's root can change; links are not followed.
//
// Preconditions: Open has succeeded on this thread.
func (s *Stage) OpenProgram(path string, flags uint64) (*os.File, error) {
	image, err := s.clones.image()
	if err != nil {
		return nil, err
	}
	f, err := OpenBeneath(image.File, path[1:], flags)
	if err != nil {
		return nil, err
	}
	var info unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &info)
	if err == nil && (info.Mode&unix.S_IFMT != unix.S_IFREG || int(info.Uid) != image.rootID || info.Mode&0o022 != 0) {
		err = errors.New("not a file that only root can write to")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReplaceBootID mounts the stage's file over the boot's id in the /proc of another process, for runtimes that mount nothing
// there. It leaves the thread in that process's mount namespace.
//
// Preconditions: Stage.Mount has succeeded on this thread.
func ReplaceBootID(pid int) error {
	file, err := cloneMount(unix.AT_FDCWD, filepath.Join(Proc, procfs.BootID), 0, true)
	if err != nil {
		return err
	}
	defer file.Close()
	namespace, err := kernfile.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid), unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer namespace.Close()
	if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("setns", err)
	}
	return os.NewSyscallError("move_mount", unix.MoveMount(int(file.Fd()), "", unix.AT_FDCWD, "/proc/"+procfs.BootID, unix.MOVE_MOUNT_F_EMPTY_PATH))
}

// fillRoot fills the guest's root, a folder of the staging tmpfs, with the entries of the
// overlay. Links and empty folders, including the guest's own, are created; everything else
// is mounted from the overlay.
//
// The guest's own files are thus in the tmpfs itself: creating, renaming and removing many
// small files takes 1.03 times as long as outside; through the overlay it took 1.39 times
// as long. All guest folders are in one mount: a rename or link from one mount to another
// fails with EXDEV, which programs do not expect that write to the temporary folder first.
//
// A guest folder that contains files of the image stays in the overlay, a slower and separate
// mount, because only there can the guest change them. So do folders that everyone may write
// to inside mounted ones, such as /var/tmp.
//
// Hidden files and folders are not mounted: an empty one without permissions replaces
// each, and with a folder all that is in it.
func (s *Stage) fillRoot() error {
	if s.tree.OneOverlay {
		return errors.Join(bind(overlayDir, Root), s.tree.setFlags("/"))
	}
	f := filler{Stage: s, open: map[string]bool{}}
	for _, d := range s.tree.Dirs {
		for p := filepath.Dir(d); p != "/"; p = filepath.Dir(p) {
			f.open[p] = true
		}
	}
	entries, err := os.ReadDir(overlayDir)
	if err != nil {
		return err
	}
	return errors.Join(os.Lchown(Root, s.rootID, s.rootID), f.fill("/", entries))
}

// A filler fills the root. Nothing changes the overlay meanwhile: a name that is not a
// link is still none when it is mounted.
type filler struct {
	*Stage
	open map[string]bool // folders that contain a guest folder: their entries are added one by one
}

// maxOpen limits the mounts for the entries of one folder. A larger folder is mounted as
// a whole, including the guest folders in it.
const maxOpen = 64

func (f filler) fill(dir string, entries []fs.DirEntry) error {
	for _, e := range entries {
		info, err := e.Info()
		if err == nil {
			err = f.add(filepath.Join(dir, e.Name()), info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add makes the root's entry at path. The entries of a hidden folder that leads to a shown
// place are added one by one, so that the others stay hidden.
func (f filler) add(path string, info fs.FileInfo) error {
	from, to := filepath.Join(overlayDir, path), filepath.Join(Root, path)
	if isHidden := f.tree.hides(path) && !slices.Contains(mountPoints, path); isHidden && !(info.IsDir() && f.tree.leadsToShown(path)) {
		return makeEmpty(to, info.IsDir(), 0)
	} else if isHidden {
		f.open[path] = true
	}
	switch info.Mode().Type() {
	case fs.ModeSymlink:
		target, err := os.Readlink(from)
		return errors.Join(err, os.Symlink(target, to), os.Lchown(to, f.rootID, f.rootID))
	case fs.ModeDir:
		return f.addFolder(path, info)
	}
	if err := makeEmpty(to, false, 0o644); err != nil { // the mount point
		return err
	}
	return f.mount(path)
}

// addFolder makes a folder with the overlay's owner and mode, and adds its entries or mounts
// the overlay's folder on it. An empty one, such as a guest folder, needs neither, unless files
// come later.
func (f filler) addFolder(path string, info fs.FileInfo) error {
	owner := info.Sys().(*syscall.Stat_t)
	uid, gid := int(owner.Uid), int(owner.Gid)
	if uid == 0 { // of an image without an id map
		uid, gid = f.rootID, f.rootID
	}
	if err := mkdirAs(filepath.Join(Root, path), info.Mode(), uid, gid); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(overlayDir, path))
	switch {
	case err != nil || len(entries) == 0 && path != ProgramDir:
		return err
	case f.open[path] && (len(entries) <= maxOpen || f.tree.hides(path)):
		return f.fill(path, entries)
	}
	return f.mount(path)
}

// mount mounts a file or folder from the overlay.
func (f filler) mount(path string) error {
	if err := bind(filepath.Join(overlayDir, path), filepath.Join(Root, path)); err != nil {
		return err
	}
	return f.tree.setFlags(path)
}
