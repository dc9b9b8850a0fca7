package jail

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
)

// onDisk puts a jail's tree on disk.
func onDisk(t *testing.T, bytes, inodes int64) func(*Spec) {
	return func(s *Spec) { s.DiskDir, s.Disk, s.Inodes = t.TempDir(), bytes, inodes }
}

// disks counts the loop devices with files in a folder.
func disks(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(text), dir+"/") { // it can be detached meanwhile
			n++
		}
	}
	return n
}

// large lets a program write large files.
func large(c *Command) {
	c.FileSize, c.Limits = 1<<40, cgroup.Limits{Memory: 64 << 20, CPUs: 1, Pids: 16}
}

// A tree on disk has room for as much as the limits allow, beside the host's own files, and nothing is left of it.
func TestDisk(t *testing.T) {
	const size, inodes = 192 << 20, 1000
	var dir string
	j := newJail(t, onDisk(t, size, inodes), func(s *Spec) {
		dir = s.DiskDir
		s.Files = []File{{Path: "/work/large", Mode: 0o644, Data: make([]byte, 3<<20)}}
	})
	const left = "busybox stat -f -c '%a %d' /tmp"
	full := fmt.Sprintf("%d %d", size/4096, inodes)
	for _, tc := range []struct{ script, want string }{
		{left, full},
		{"busybox truncate -s 1000000000000 /tmp/hole && busybox rm /tmp/hole; " + left, full},
		{"n=0; while echo >/tmp/f$n; do n=$((n+1)); done 2>/tmp/f0; echo $n; busybox cat /tmp/f0; busybox rm /tmp/f*", fmt.Sprintf("%d\n/bin/sh: can't create /tmp/f%d: No space left on device", inodes, inodes)},
		{"busybox mknod /tmp/null c 1 3 2>/dev/null || echo refused", "refused"},
	} {
		if got := output(t, j, tc.script+"; true", large); got != tc.want {
			t.Errorf("%s\n got %q\nwant %q", tc.script, got, tc.want)
		}
	}
	// That is three times the memory. The last of the space may go to the file system's own records.
	text := output(t, j, "busybox dd if=/dev/zero of=/tmp/fill bs=64k 2>/dev/null; busybox stat -c %s /tmp/fill; busybox stat -f -c %a /tmp; busybox rm /tmp/fill", large)
	var got, rest int64
	if _, err := fmt.Sscan(text, &got, &rest); err != nil || got > size || got < size-1<<20 || rest > 256 {
		t.Errorf("wrote %d bytes of %d, and %d blocks are left: %v", got, size, rest, err)
	}
	if r, err := j.Resources(t.Context()); err != nil || r.Disk > 1<<20 || disks(t, dir) != 1 {
		t.Errorf("%+v, %v, %d disks", r, err, disks(t, dir))
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	waitFor(t, "the disk to end", func() bool { return disks(t, dir) == 0 })
}

// A disk that the host has no space for is refused.
func TestDiskTooLarge(t *testing.T) {
	spec := testSpec(t)
	onDisk(t, 1<<55, 1000)(&spec)
	j, err := Create(t.Context(), spec)
	if err == nil {
		t.Fatal(j.Close())
	}
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), spec.DiskDir) {
		t.Error(err)
	}
}

// A tree on disk has room for the empty files that hide others.
func TestDiskHides(t *testing.T) {
	newJail(t, onDisk(t, 128<<20, 1000), func(s *Spec) {
		s.Image, s.Hide, s.Show = t.TempDir(), []Place{tree("/many")}, []Place{{Path: "/many/shown"}}
		many := filepath.Join(s.Image, "many")
		if err := errors.Join(os.CopyFS(s.Image, os.DirFS(testSpec(t).Image)), os.Mkdir(many, 0o755), os.WriteFile(many+"/shown", nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		for i := range 3000 {
			if err := os.WriteFile(filepath.Join(many, strconv.Itoa(i)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Rules for places apply on disk as in memory.
func TestDiskPlaces(t *testing.T) {
	j := newJail(t, onDisk(t, 128<<20, 1000), func(s *Spec) {
		s.NoExec, s.ReadOnly, s.Hide = []Place{tree("/")}, []Place{tree("/work")}, []Place{tree("/usr/libexec")}
		s.Exec = []Place{tree("/bin")}
	})
	for _, tc := range []struct{ script, want string }{
		{"busybox cp /bin/busybox /tmp/b && /tmp/b true; echo $?", "/bin/sh: /tmp/b: Permission denied\n126"},
		{"echo x >/work/x || echo refused", "/bin/sh: can't create /work/x: Read-only file system\nrefused"},
		{"ls /usr/libexec || echo refused", "ls: can't open '/usr/libexec': Permission denied\nrefused"},
	} {
		if got := output(t, j, tc.script, large); got != tc.want {
			t.Errorf("%s\n got %q\nwant %q", tc.script, got, tc.want)
		}
	}
}

// Disks of all sizes have exactly the room that the limits allow.
func TestDiskSizes(t *testing.T) {
	large := mountDiskDir(t, "size=11g") // of pages that are not used
	for _, size := range []int64{1 << 20, 65<<20 + 4096, 10 << 30} {
		for _, inodes := range []int64{16, 200_000, 1_000_000} {
			j := newJail(t, onDisk(t, size, inodes), large)
			want := fmt.Sprintf("%d %d", size/4096, inodes)
			if got := output(t, j, "busybox stat -f -c '%a %d' /tmp"); got != want {
				t.Errorf("%d bytes and %d files: %s, want %s", size, inodes, got, want)
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// mountDiskDir mounts a tmpfs for the disks of jails.
func mountDiskDir(t *testing.T, options string) func(*Spec) {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		waitFor(t, "the disks to end", func() bool { return disks(t, dir) == 0 })
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return func(s *Spec) { s.DiskDir = dir }
}

// When the host's own disk is full, guests get errors, and their jails still end.
func TestDiskHostIsFull(t *testing.T) {
	inSmall := mountDiskDir(t, "size=150m")
	for _, j := range []*Jail{newJail(t, onDisk(t, 80<<20, 100), inSmall), newJail(t, onDisk(t, 80<<20, 100), inSmall)} {
		text := output(t, j, "busybox dd if=/dev/zero of=/tmp/fill bs=64k conv=fsync 2>&1 | busybox grep -o 'No space left on device\\|I/O error'; busybox rm /tmp/fill; echo ended", large)
		if !strings.HasSuffix(text, "ended") || len(text) < len("I/O error\nended") {
			t.Errorf("%q", text)
		}
	}
}

// Disks that are formatted while processes start are complete.
func TestDisksConcurrently(t *testing.T) {
	var all sync.WaitGroup
	for i := range 8 {
		spec := testSpec(t)
		onDisk(t, int64(100+20*i)<<20, 1000)(&spec)
		all.Go(func() {
			for range 3 {
				spec.Disk += 256 << 20
				j, err := Create(t.Context(), spec)
				if err == nil {
					err = j.Close()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
