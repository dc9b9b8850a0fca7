package jail

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"gaol/jail/chroot"
)

// The names in the staging tmpfs. The overlay is given them as relative paths,
// so that the guest, who can read its mount options, sees no path of the host.
const (
	stageImage  = "image"
	stageLayer  = "layer"
	stageUpper  = "upper"
	stageWork   = "work"
	stageTree   = "tree"   // where the overlay is mounted
	stageRoot   = "root"   // what the guest sees as its root
	stageBlank  = "blank"  // what hides parts of it
	stageKept   = "kept"   // what is to be seen again
	stageCopies = "copies" // what is written to folders of the host's
	stageProc   = "proc"   // what is mounted over the jail's /proc
)

// stage mounts the jail's tree, without /proc, at stageRoot below dir. It makes dir
// the thread's working directory.
//
// What is mounted here belongs to the host's user namespace: in the jail's own
// namespace, which gets a copy, it is locked.
//
// Preconditions: the thread is locked to its goroutine and is not the process's
// main thread, see init. The mounts are the thread's alone: the host does not see
// them, and they end with it.
func stage(dir string, s *Spec, firstID int, mounts *detaching) error {
	steps := []struct {
		name, target string
		do           func() error
	}{
		// CLONE_FS: the working directory below is the thread's own.
		{"unshare", "mount namespace", func() error { return unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS) }},
		{"leave", "chroot", chroot.Leave},
		// Slave, not private: a disk that the host unmounts must not stay busy here.
		{"mount", "/", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "") }},
		{"mount", "tmpfs", func() error { return mountTmpfs(dir) }},
		{"chdir", dir, func() error { return unix.Chdir(dir) }},
		{"make", "folders", makeStageDirs},
		{"mount", s.Image, mounts.mountImage},
		{"write", "layer", func() error { return writeLayer(slices.Concat(s.Layer, limitFiles(s.Limits)), firstID) }},
		{"make", "guest folders", func() error { return makeGuestDirs(s, firstID) }},
		{"make", "mount points", func() error { return makeMountPoints(firstID) }},
		{"mount", "overlay", mountOverlay},
		{"lay", "root", func() error { return layRoot(s, firstID) }},
		{"mount", "/dev", func() error { return mountDev(firstID) }},
		{"write", "/proc", func() error { return writeProc(s) }},
		{"open", "mounts", mounts.wait},
		{"mount", "folders of the host", func() error { return mountSources(s, mounts.list, firstID) }},
		{"cover", "places", func() error { return cover(s, firstID) }},
		{"limit", "tmpfs", func() error { return limitTmpfs(s) }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return &StepError{step.name, step.target, err}
		}
	}
	return nil
}

// mountTmpfs mounts what limitTmpfs bounds later.
func mountTmpfs(dir string) error {
	return unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755")
}

// limitTmpfs leaves the guest room for what it may write and no more, besides what
// is there already.
func limitTmpfs(s *Spec) error {
	var now unix.Statfs_t
	if err := unix.Statfs(".", &now); err != nil {
		return err
	}
	bytes, inodes := int64(now.Blocks-now.Bfree)*now.Bsize, int64(now.Files-now.Ffree)
	data := fmt.Sprintf("size=%d,nr_inodes=%d,mode=0755", bytes+s.Disk, inodes+s.Inodes)
	flags := uintptr(unix.MS_REMOUNT | unix.MS_NOSUID | unix.MS_NODEV)
	if s.noExec("/") {
		flags |= unix.MS_NOEXEC // of the mount that becomes the guest's root
	}
	return unix.Mount("", ".", "", flags, data)
}

func makeStageDirs() error {
	for _, d := range []string{stageImage, stageLayer, stageUpper, stageWork, stageTree, stageRoot, stageBlank, stageKept, stageCopies, stageProc} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(d, 0o755); err != nil { // whatever the host's umask
			return err
		}
	}
	return nil
}

// writeLayer writes files that belong to the guest's root.
func writeLayer(files []File, root int) error {
	for _, f := range files {
		path := filepath.Join(stageLayer, f.Path)
		if err := mkdirAll(filepath.Dir(path), root); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Data, f.Mode); err != nil {
			return err
		}
		if err := errors.Join(os.Chmod(path, f.Mode), os.Lchown(path, root, root)); err != nil {
			return err
		}
	}
	return nil
}

func mountOverlay() error {
	data := fmt.Sprintf("lowerdir=%s:%s,upperdir=%s,workdir=%s", stageLayer, stageImage, stageUpper, stageWork)
	return unix.Mount("overlay", stageTree, "overlay", unix.MS_NOSUID|unix.MS_NODEV, data)
}
