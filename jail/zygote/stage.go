package zygote

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gaol/jail/chroot"
)

// Folders in the zygote's tmpfs. The mount options of the overlay have them as relative
// paths, as in package jail.
const (
	stageImage = "image"
	stageLayer = "layer"
	stageRoot  = "root"
)

// stage makes an overlay of the layer over the image the root of this thread.
//
// Preconditions: the thread is locked to its goroutine, is not the main thread and ends
// with the goroutine.
func stage(dir string, s *Spec) error {
	steps := []struct {
		name, target string
		do           func() error
	}{
		{"unshare", "mount namespace", func() error { return unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS) }},
		{"leave", "chroot", chroot.Leave},
		{"mount", "/", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		{"mount", "tmpfs", func() error { return unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755") }},
		{"chdir", dir, func() error { return unix.Chdir(dir) }},
		{"mkdir", "folders", makeFolders},
		{"mount", s.Image, func() error { return unix.Mount(s.Image, stageImage, "", unix.MS_BIND, "") }},
		{"write", "layer", func() error { return writeLayer(s.Layer) }},
		{"mount", "overlay", mountOverlay},
		{"pivot", "root", pivot},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return &os.PathError{Op: step.name, Path: step.target, Err: err}
		}
	}
	return nil
}

func makeFolders() error {
	for _, d := range []string{stageImage, stageLayer, stageRoot} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func writeLayer(files []File) error {
	for _, f := range files {
		path := filepath.Join(stageLayer, f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func mountOverlay() error {
	const flags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
	return unix.Mount("overlay", stageRoot, "overlay", flags, "lowerdir="+stageLayer+":"+stageImage)
}

// pivot unmounts the host's tree.
func pivot() error {
	if err := unix.Chdir(stageRoot); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil { // stacks the old root on the new one: pivot_root(2)
		return err
	}
	return unix.Unmount(".", unix.MNT_DETACH)
}
