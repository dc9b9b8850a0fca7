package host

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/vfs/hostfs"
)

// Missing mount points, files and folders below a mount are created in the host's folder,
// with its owner, or in the guest's copy.
func TestCreateBelowMounts(t *testing.T) {
	const owner = 4242
	packages := harness.HostTree(t, map[string]string{"p/index.js": `module.exports = 'package'`})
	other := harness.HostTree(t, map[string]string{"in.txt": "other"})
	for access, name := range map[runtime.Access]string{runtime.ReadWrite: "rw", runtime.CopyOnWrite: "cow"} {
		dir := harness.HostTree(t, map[string]string{"f": "host's"})
		if err := errors.Join(os.Chown(dir, owner, owner), os.Chown(filepath.Join(dir, "f"), owner, owner)); err != nil {
			t.Fatal(err)
		}
		rt := harness.Create(t, runtime.Options{
			Mounts: []runtime.Mount{{Source: dir, Target: "/data", Access: access}, {Source: other, Target: "/data/a/b"}, {Source: filepath.Join(other, "in.txt"), Target: "/data/one"}},
			Cwd:    "/data/c/work", NodeModules: packages, Files: map[string][]byte{"/data/d/x": []byte("file"), "/data/f": []byte("mine")},
		})
		res := harness.Run(t, rt, `
			import fs from 'node:fs'; import p from 'p'; const read = f => fs.readFileSync(f, 'utf8');
			fs.writeFileSync('new', 'new');
			console.log(p, process.cwd(), read('/data/a/b/in.txt'), read('/data/one'), read('/data/d/x'), read('/data/f'));
			console.log(['/data', '/data/a', '/data/c', '.', '/data/d', '/data/d/x'].map(f => fs.statSync(f).uid + ' ' + (fs.statSync(f).mode & 0o777).toString(8)).join(' '))`, runtime.RunOptions{})
		if want := "package /data/c/work other other file mine\n1000 755 1000 755 1000 755 1000 755 1000 755 1000 644\n"; string(res.Stdout) != want {
			t.Errorf("%s: got %q %q\nwant %q", name, res.Stdout, res.Stderr, want)
		}
		for _, made := range []string{"a/b", "c/work/node_modules", "c/work/new", "d/x", "one"} {
			var info unix.Stat_t
			err := unix.Lstat(filepath.Join(dir, made), &info)
			switch {
			case access == runtime.CopyOnWrite && !errors.Is(err, unix.ENOENT):
				t.Errorf("%s: the host has %s: %v", name, made, err)
			case access == runtime.ReadWrite && (err != nil || info.Uid != owner || info.Gid != owner):
				t.Errorf("%s: the host's %s is of %d, %v", name, made, info.Uid, err)
			}
		}
	}
}

// A mount point that a read-only mount lacks is rejected. An existing one is used.
func TestCreateBelowReadOnlyMounts(t *testing.T) {
	packages := harness.HostTree(t, map[string]string{"p/index.js": `module.exports = 'package'`})
	dir := harness.HostTree(t, map[string]string{"c/node_modules/.keep": "", "a/b/.keep": ""})
	in := runtime.Mount{Source: dir, Target: "/data"}
	for place, o := range map[string]runtime.Options{
		"/data/new":          {Mounts: []runtime.Mount{in, {Source: packages, Target: "/data/new/x"}}},
		"/data/node_modules": {Mounts: []runtime.Mount{in}, Cwd: "/data", NodeModules: packages},
		"/data/work":         {Mounts: []runtime.Mount{in}, Cwd: "/data/work"},
		"/data/x":            {Mounts: []runtime.Mount{in}, Files: map[string][]byte{"/data/x": nil}},
		"/data/a/b/.keep":    {Mounts: []runtime.Mount{in}, Files: map[string][]byte{"/data/a/b/.keep": nil}},
	} {
		err := harness.CreateError(t, harness.Options(o))
		if want := place + " can't be made in the mount of /data (read-only file system): make it in the mount's source, or make the mount copy-on-write"; !errors.Is(err, jail.ErrNotInMount) || errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	rt := harness.Create(t, runtime.Options{Mounts: []runtime.Mount{in, {Source: packages, Target: "/data/a/b"}}, Cwd: "/data/c", NodeModules: packages})
	if res := harness.Run(t, rt, `import p from 'p'; import fs from 'node:fs'; console.log(p, process.cwd(), fs.readdirSync('/data/a/b'))`, runtime.RunOptions{}); string(res.Stdout) != "package /data/c [ 'p' ]\n" {
		t.Errorf("%q %q", res.Stdout, res.Stderr)
	}
}

// Nothing is created or written through a link in the source, or where the guest may not
// write.
func TestCreateBelowMountsByLinks(t *testing.T) {
	outside := harness.HostTree(t, map[string]string{"f": "outside"})
	dir := harness.HostTree(t, map[string]string{"away": "-> " + outside, "file": "-> " + filepath.Join(outside, "f"), "third/x": "", "pipe": ""})
	pipe := filepath.Join(dir, "pipe")
	if err := errors.Join(os.Chown(filepath.Join(dir, "third"), 4343, 4343), os.Remove(pipe), unix.Mkfifo(pipe, 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, access := range []runtime.Access{runtime.ReadWrite, runtime.CopyOnWrite} {
		in := runtime.Mount{Source: dir, Target: "/data", Access: access}
		for name, tc := range map[string]struct {
			want error
			o    runtime.Options
		}{
			"mount": {unix.ELOOP, runtime.Options{Mounts: []runtime.Mount{in, {Source: outside, Target: "/data/away/new"}}}},
			"cwd":   {unix.ELOOP, runtime.Options{Mounts: []runtime.Mount{in}, Cwd: "/data/away/new"}},
			"file":  {unix.ELOOP, runtime.Options{Mounts: []runtime.Mount{in}, Files: map[string][]byte{"/data/file": []byte("mine")}}},
			"below": {unix.ELOOP, runtime.Options{Mounts: []runtime.Mount{in}, Files: map[string][]byte{"/data/away/f": []byte("mine")}}},
			"pipe":  {unix.EINVAL, runtime.Options{Mounts: []runtime.Mount{in}, Files: map[string][]byte{"/data/pipe": []byte("mine")}}},
			"third": {jail.ErrNotInMount, runtime.Options{Mounts: []runtime.Mount{in}, Files: map[string][]byte{"/data/third/new": []byte("mine")}}},
		} {
			if name == "third" && access == runtime.CopyOnWrite {
				continue // gaol may change the copy
			}
			err := harness.CreateError(t, harness.Options(tc.o))
			if !errors.Is(err, tc.want) {
				t.Errorf("%s, access %d: %v, want %v", name, access, err, tc.want)
			}
		}
	}
	entries, err := os.ReadDir(outside)
	if text, err2 := os.ReadFile(filepath.Join(outside, "f")); errors.Join(err, err2) != nil || len(entries) != 1 || string(text) != "outside" {
		t.Errorf("outside are %v, %q, %v", entries, text, errors.Join(err, err2))
	}
}

// A working directory in a writable mount is writable, even if the root is read-only.
func TestCreateBelowMountsInAReadOnlyRoot(t *testing.T) {
	dir := t.TempDir()
	rt := harness.Create(t, runtime.Options{ReadOnlyRoot: true, Cwd: "/workspace/sub", Mounts: []runtime.Mount{{Source: dir, Target: "/workspace", Access: runtime.ReadWrite}}})
	if res := harness.Run(t, rt, `import fs from 'node:fs'; fs.writeFileSync('new', ''); console.log('ok')`, runtime.RunOptions{}); string(res.Stdout) != "ok\n" {
		t.Errorf("%q %q", res.Stdout, res.Stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "sub/new")); err != nil {
		t.Error(err)
	}
}

// Limits do not bound files of the host. The host reads a sparse file within the limits
// that it sets.
func TestLargeFileInAMount(t *testing.T) {
	const size, disk = 2 << 30, 1 << 20
	dir := t.TempDir()
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Disk: disk}, Mounts: []runtime.Mount{{Source: dir, Target: "/data", Access: runtime.ReadWrite}}})
	const script = `
		import fs from 'node:fs'; const t = f => { try { return f() ?? 'ok' } catch (e) { return e.code } };
		fs.writeFileSync('/data/written', Buffer.alloc(3 << 20));
		const f = fs.openSync('/data/holes', 'w'); fs.ftruncateSync(f, 2 ** 31 - 1); fs.writeSync(f, 'x', 2 ** 31 - 1);
		console.log(fs.fstatSync(f).size, t(() => fs.writeFileSync('full', Buffer.alloc(3 << 20))))`
	if res := harness.Run(t, rt, script, runtime.RunOptions{}); string(res.Stdout) != "2147483648 ENOSPC\n" {
		t.Fatalf("%q %q, %s", res.Stdout, res.Stderr, res.Cause)
	}
	fsys := rt.FS()
	info, err := fsys.Stat("/data/holes")
	if err != nil || info.Size() != size {
		t.Errorf("%v, %v", info, err)
	}
	f, err := fsys.Open("/data/holes")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	last := make([]byte, 1)
	if n, err := f.ReadAt(last, size-1); n != 1 || last[0] != 'x' {
		t.Errorf("the last byte is %q, %v", last[:n], err)
	}
	if _, err := fsys.ReadFile("/data/holes"); !isLimit(err, "bytes") {
		t.Errorf("read: %v", err)
	}
	if _, err := fsys.Tar(io.Discard, "/data", hostfs.TarOptions{}); !isLimit(err, "bytes") {
		t.Errorf("tar: %v", err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: "big", Typeflag: tar.TypeReg, Size: size, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if _, err := fsys.Untar(&archive, "/data", hostfs.UntarOptions{}); !isLimit(err, "bytes") {
		t.Errorf("untar: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "big")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a rejected file exists: %v", err)
	}
	if !testing.Short() {
		if report, err := fsys.Tar(io.Discard, "/data", hostfs.TarOptions{Bytes: 3 << 30}); err != nil || report.Bytes != size+3<<20 {
			t.Errorf("tar: %+v, %v", report, err)
		}
	}
	// Without such a mount no file is longer than the limit of the tree.
	without := harness.Create(t, runtime.Options{Limits: runtime.Limits{Disk: disk}})
	if res := harness.Run(t, without, `require('fs').ftruncateSync(require('fs').openSync('holes', 'w'), 2 << 20)`, runtime.RunOptions{Name: "a.cjs"}); res.ExitCode == 0 {
		t.Errorf("a file of holes, of twice the tree's size, was made: %q", res.Stderr)
	}
}

func isLimit(err error, what string) bool {
	l, ok := errors.AsType[*hostfs.LimitError](err)
	return ok && l.What == what
}
