package host

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/vfs/hostfs"
)

// Guest and host see each other's files, with the guest as the owner.
func TestFilesAreShared(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	f := rt.FS()
	if err := f.WriteFile("/workspace/in/from-host.txt", []byte("hello guest"), hostfs.WriteOptions{Parents: true, Mode: 0o640}); err != nil {
		t.Fatal(err)
	}
	if err := f.Symlink("/workspace/in", "/workspace/link"); err != nil {
		t.Fatal(err)
	}
	res := harness.Run(t, rt, `
		import fs from 'node:fs';
		import os from 'node:os';
		const s = fs.statSync('/workspace/link/from-host.txt');
		fs.appendFileSync('/workspace/in/from-host.txt', ', hello host');
		fs.mkdirSync('out/deep', { recursive: true });
		fs.writeFileSync('out/deep/\n', 'x'.repeat(1000));
		fs.writeFileSync(Buffer.from('/workspace/out/\xff', 'latin1'), '');
		fs.symlinkSync('/etc/passwd', 'passwd');
		__return([s.uid, s.gid, s.mode & 0o7777, os.userInfo().username, fs.statSync('in').uid, String(fs.readFileSync('/etc/passwd'))]);
	`, runtime.RunOptions{})
	var got []any
	if err := res.Decode(&got); err != nil || len(got) != 6 {
		t.Fatalf("%v: %s", err, res.Stderr)
	}
	if got[0] != 1000.0 || got[1] != 1000.0 || got[2] != float64(0o640) || got[3] != "node" || got[4] != 1000.0 {
		t.Errorf("the guest sees %v", got)
	}
	if data, err := f.ReadFile("/workspace/in/from-host.txt"); string(data) != "hello guest, hello host" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if i, err := f.Stat("/workspace/out/deep/\n"); err != nil || i.Owner() != 1000 || i.Group() != 1000 || i.Size() != 1000 || time.Since(i.CreateTime()) > time.Minute {
		t.Error(i, err)
	}
	if i, err := f.Stat("/workspace/out/\xff"); err != nil || i.Owner() != 1000 {
		t.Error(i, err)
	}
	if data, err := f.ReadFile("/workspace/passwd"); string(data) != got[5] || err != nil {
		t.Errorf("a link to the guest's own /etc/passwd gives %q, %v", data, err)
	}
	if i, err := f.Stat("/usr/bin/busybox"); err != nil || i.Owner() != 0 || i.Group() != 0 {
		t.Errorf("the image's files do not belong to the guest's root: %v, %v", i, err)
	}
}

// The host does not follow a guest's link to change files that the guest itself may not change.
func TestFilesOfTheImageStay(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	f := rt.FS()
	harness.Output(t, rt, runtime.RunOptions{}, "sh", "-c", "ln -s /usr/libexec/gaol /workspace/out; ln -s /etc/passwd /workspace/passwd; ln -s / /workspace/root")
	for what, err := range map[string]error{
		"write":      f.WriteFile("/workspace/out/enter", []byte("#!/bin/sh"), hostfs.WriteOptions{}),
		"new file":   f.WriteFile("/workspace/out/new", nil, hostfs.WriteOptions{}),
		"append":     f.Append("/workspace/passwd", []byte("x::0:0::/:"), hostfs.WriteOptions{}),
		"rename":     f.Rename("/workspace/out/enter", "/workspace/enter"),
		"removeall":  f.RemoveAll("/workspace/out/enter"),
		"chmod":      f.Chmod("/workspace/passwd", 0o777),
		"mkdir":      f.MkdirAll("/workspace/root/new", 0),
		"untar":      func() error { _, err := f.Untar(archive(t, f), "/workspace/out", hostfs.UntarOptions{}); return err }(),
		"kernel":     func() error { _, err := f.ReadFile("/proc/1/environ"); return err }(),
		"kernel dir": func() error { _, err := f.ReadDir("/proc"); return err }(),
	} {
		if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.EXDEV) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := f.ReadFile("/proc/1/root/etc/passwd"); !errors.Is(err, unix.ELOOP) && !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	for _, dev := range []string{"/dev/zero", "/dev/tty", "/dev/ptmx", "/dev/stdin"} {
		if _, err := f.ReadFile(dev); err == nil {
			t.Errorf("%s was read", dev)
		}
	}
	if err := f.WriteFile("/dev/null", nil, hostfs.WriteOptions{}); !errors.Is(err, fs.ErrInvalid) {
		t.Error(err)
	}
	if err := f.WriteFile("/dev/shm/x", []byte("x"), hostfs.WriteOptions{}); err != nil {
		t.Error(err)
	}
	if res := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
		t.Errorf("%+v", res)
	}
}

func archive(t *testing.T, f hostfs.Files) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	if err := f.WriteFile("/workspace/packed/enter", nil, hostfs.WriteOptions{Parents: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Tar(&b, "/workspace/packed", hostfs.TarOptions{}); err != nil {
		t.Fatal(err)
	}
	return &b
}

// The host cannot remove the mount points of mounts that enforce permissions. The kernel
// would detach such a mount, because it is in another mount namespace.
func TestFilesKeepMountsOfPermissions(t *testing.T) {
	writing := []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "truncate", "chmod"}
	perms := policy.Permissions{FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{
		{Mode: policy.Deny, Operations: writing, Paths: []string{"/workspace/fixed/**"}},
		{Mode: policy.Deny, Paths: []string{"/workspace/secret/**"}},
	}}}
	rt := harness.Create(t, runtime.Options{Permissions: perms})
	f := rt.FS()
	harness.Output(t, rt, runtime.RunOptions{}, "sh", "-c", "ln -s . /workspace/way")
	mounted := false
	for _, p := range []string{"/workspace/fixed", "/workspace/secret"} {
		i, err := f.Lstat(p)
		if err != nil {
			t.Logf("%s: %v", p, err)
			continue
		}
		mounted = true
		for what, err := range map[string]error{
			"write":     f.WriteFile(p+"/new", nil, hostfs.WriteOptions{}),
			"remove":    f.Remove("/workspace/way" + p[len("/workspace"):]),
			"removeall": f.RemoveAll(p),
			"rename":    f.Rename(p, "/workspace/else"),
			"replace":   f.Rename("/workspace/way", p),
		} {
			if err == nil {
				t.Errorf("%s %s (%v) worked", what, p, i)
			}
		}
		if now, err := f.Lstat(p); err != nil || now.Mode() != i.Mode() {
			t.Errorf("%s was %v and is %v, %v", p, i, now, err)
		}
	}
	if !mounted {
		t.Error("nothing is mounted: this test proves nothing")
	}
	if err := f.RemoveAll("/workspace"); err == nil {
		t.Error("a folder with mounts was removed")
	}
	res, err := rt.Command(t.Context(), "sh", []string{"-c", "echo x > /workspace/fixed/new"}, runtime.RunOptions{})
	if err != nil || res.ExitCode == 0 {
		t.Errorf("the guest writes to a read-only place: %+v, %v", res, err)
	}
}

func TestFilesFillTheDisk(t *testing.T) {
	limits := runtime.Limits{Disk: 1 << 20}
	limitsFiles := harness.Needs(t, runtime.FeatureFiles)
	if limitsFiles {
		limits.Files = 100
	}
	rt := harness.Create(t, runtime.Options{Limits: limits})
	f := rt.FS()
	old := bytes.Repeat([]byte("o"), 500<<10)
	if err := f.WriteFile("/workspace/file", old, hostfs.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile("/workspace/file", bytes.Repeat([]byte("n"), 600<<10), hostfs.WriteOptions{}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v, want %v", err, unix.ENOSPC)
	}
	if data, err := f.ReadFile("/workspace/file"); !bytes.Equal(data, old) || err != nil {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if list, err := f.ReadDir("/workspace"); len(list) != 1 || err != nil {
		t.Error(list, err)
	}
	if !limitsFiles {
		return
	}
	var err error
	for n := 0; n < 200 && err == nil; n++ {
		err = f.MkdirAll("/workspace/"+strings.Repeat("d/", n)+"d", 0)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("inodes: %v, want %v", err, unix.ENOSPC)
	}
	if err := f.RemoveAll("/workspace/d"); err != nil {
		t.Error(err)
	}
}

func TestFilesViewOfGuest(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	harness.Output(t, rt, runtime.RunOptions{}, "sh", "-c", "mkdir -p a/b; echo x > a/b/file; ln -s b/file a/link; echo y > top")
	if err := fstest.TestFS(rt.FS().View("/workspace"), "a/b/file", "top", "a/link"); err != nil {
		t.Error(err)
	}
	if found, err := fs.Glob(rt.FS().View("/usr"), "*/bin/node"); len(found) == 0 || err != nil {
		t.Error(found, err)
	}
	if err := rt.FS().Walk("/", func(p string, _ *hostfs.Info, err error) error {
		if strings.HasPrefix(p, "/proc/") {
			t.Error("the walk went to", p)
			return fs.SkipAll
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestFilesOfClosedRuntime(t *testing.T) {
	rt, err := runtime.Create(t.Context(), harness.Options(runtime.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	f := rt.FS()
	if err := f.WriteFile("/workspace/file", []byte("x"), hostfs.WriteOptions{}); err != nil {
		t.Error(err)
	}
	file, err := f.Open("/workspace/file")
	if err != nil {
		t.Error(err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	_, failed := f.ReadFile("/workspace/file")
	_, readFailed := file.Read(make([]byte, 1))
	for _, err := range []error{failed, readFailed, f.WriteFile("/workspace/file", nil, hostfs.WriteOptions{}), f.RemoveAll("/workspace/x")} {
		if !errors.Is(err, runtime.ErrClosed) {
			t.Errorf("%v, want %v", err, runtime.ErrClosed)
		}
		if e, ok := errors.AsType[*fs.PathError](err); !ok || !strings.HasPrefix(e.Path, "/workspace/") {
			t.Errorf("%v names no path", err)
		}
	}
}
