package jail

import (
	"fmt"
	"strings"
	"testing"

	"gaol/jail/mounts"
)

// Programs write to the temporary folder and then rename or link the file to another folder.
func TestGuestFoldersShareOneMount(t *testing.T) {
	j := newJail(t, func(s *Spec) { s.Dirs = []string{"/work", "/home/guest", "/usr/src/app", "/new/deep/folder"} })
	const script = `
		echo x >$from/a && busybox ln $from/a $to/linked && busybox mv -T $from/a $to/moved && [ $to/moved -ef $to/linked ] &&
		busybox rm $to/moved $to/linked && busybox stat -c %d $from $to | busybox uniq | busybox wc -l`
	for _, to := range []string{"/tmp", "/work", "/home/guest", "/usr/src/app", "/new/deep/folder"} {
		for _, from := range []string{"/tmp", "/work"} {
			if got := output(t, j, "from="+from+"; to="+to+";"+script); got != "1" {
				t.Errorf("%s to %s: %q", from, to, got)
			}
		}
	}
}

// manyFiles is more than fillRoot mounts one by one.
const manyFiles = 65

// The guest's root looks like that of the image.
func TestRootLooksLikeImage(t *testing.T) {
	j := newJail(t, func(s *Spec) {
		s.Dirs = []string{"/work", "/full", "/many/mine", "/usr/own"}
		s.Layer = append(s.Layer, File{Path: "/full/note", Mode: 0o644, Data: []byte("note")}, File{Path: "/rootfile", Mode: 0o640, Data: []byte("secret")})
		for i := range manyFiles {
			s.Layer = append(s.Layer, File{Path: fmt.Sprintf("/many/f%d", i), Mode: 0o644})
		}
	})
	for _, tc := range []struct{ script, want string }{
		{"ls /", "bin\ndev\netc\nfull\nmany\nproc\nrootfile\nrun\nsys\ntmp\nusr\nwork"},
		{"ls /usr", "libexec\nown"},
		{"ls /many | busybox wc -l", fmt.Sprint(manyFiles + 1)},
		{"stat -c '%a %u %g' / /tmp /work /full /many/mine /usr/own /usr /bin", "755 0 0\n1777 0 0\n755 1000 1000\n755 1000 1000\n755 1000 1000\n755 1000 1000\n755 0 0\n755 0 0"},
		{"readlink /bin/sh", "busybox"},
		{"cat /rootfile || echo refused", "cat: can't open '/rootfile': Permission denied\nrefused"},
		{"for d in / /usr /many /bin /etc; do busybox mkdir $d/x && echo $d; done 2>&1 | busybox grep -vc denied", "0"},
		// A guest folder that has files of the image.
		{"cat /full/note; echo mine >/full/new && busybox mv /full/new /full/note && cat /full/note && busybox rm /full/note && ls /full", "notemine"},
		{"echo x >/many/mine/x && cat /many/mine/x", "x"},
	} {
		if got := output(t, j, tc.script+"; true"); got != tc.want {
			t.Errorf("%s\n got %q\nwant %q", tc.script, got, tc.want)
		}
	}
}

// A guest folder does not change the owner and mode of the folders above it.
func TestFolderInSharedFolder(t *testing.T) {
	j := newJail(t, func(s *Spec) { s.Dirs = []string{"/work", "/tmp/a/own", "/tmp/a", "/new/b"} })
	const script = "stat -c '%a %u' /tmp /tmp/a /tmp/a/own /new /new/b; echo x >/tmp/x && echo y >/tmp/a/own/y && cat /tmp/x /tmp/a/own/y"
	if got, want := output(t, j, script), "1777 0\n755 1000\n755 1000\n755 0\n755 1000\nx\ny"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The guest's list of mounts shows no path of the host, and its folders share one limit.
func TestRootMounts(t *testing.T) {
	j := newJail(t)
	info := output(t, j, "cat /proc/self/mountinfo")
	t.Log(info)
	for line := range strings.Lines(info) {
		fields := strings.Fields(line)
		root, at := fields[3], fields[4]
		if want := strings.TrimSuffix("/root"+at, "/"); root != "/" && root != at && root != want && !strings.HasPrefix(at, "/proc/") {
			t.Errorf("%s shows %s", at, root)
		}
		if at == mounts.ProgramDir { // the host writes to it, see AddProgram
			if !strings.HasPrefix(fields[5], "ro,nosuid,nodev,noexec,") || !strings.Contains(line, "size=") || !strings.Contains(line, "nr_inodes=") {
				t.Errorf("the folder of programs: %s", line)
			}
			continue
		}
		if at != "/" && !strings.HasPrefix(at, "/dev") && !strings.HasPrefix(at, "/proc") && !strings.Contains(line, " - overlay overlay ") {
			t.Errorf("a mount of its own: %s", line)
		}
		if !strings.Contains(fields[5], "nosuid") {
			t.Errorf("%s has set-user-id programs", at)
		}
	}
	if got := output(t, j, "dd if=/dev/zero of=/tmp/a bs=64k count=12 2>&1 | busybox tail -n 1 >&2; dd if=/dev/zero of=/work/b bs=64k 2>/dev/null; busybox du -k /work/b | busybox cut -f 1"); !strings.HasSuffix(got, "\n256") && !strings.HasSuffix(got, "\n252") {
		t.Errorf("beside 768 KiB in /tmp, /work has room for %q of a disk of 1024", got)
	}
}
