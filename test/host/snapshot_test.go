package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/policy"
	"gaol/rootfs"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/vfs/hostfs"
)

const makeTree = `
	import fs from 'node:fs';
	fs.mkdirSync('app/bin', { recursive: true }); fs.writeFileSync('app/data', 'data'); fs.writeFileSync('app/bin/run', '#!/bin/sh\necho ran', { mode: 0o755 });
	fs.symlinkSync('/etc/passwd', 'app/link'); fs.linkSync('app/data', 'app/second'); fs.chmodSync('app', 0o750); fs.utimesSync('app/data', 1e9, 1e9);
	fs.writeFileSync('/home/node/.npmrc', 'x=y'); fs.writeFileSync('/tmp/not', ''); fs.writeFileSync('node_modules/x', ''); fs.writeFileSync('copy/y', ''); fs.utimesSync('app', 1e9, 1e9); fs.lutimesSync('app/link', 1e9, 1e9)`

// A snapshot contains the guest's own folders, and nothing else.
func TestSnapshot(t *testing.T) {
	host, copied := harness.HostTree(t, map[string]string{"from-the-host": ""}), harness.HostTree(t, map[string]string{"from-the-host": ""})
	first := harness.Create(t, runtime.Options{Mounts: []runtime.Mount{
		{Source: host, Target: "/workspace/node_modules", Access: runtime.ReadWrite}, {Source: copied, Target: "/workspace/copy", Access: runtime.CopyOnWrite},
	}})
	if res := harness.Run(t, first, makeTree, runtime.RunOptions{}); res.ExitCode != 0 {
		t.Fatalf("%s", res.Stderr)
	}
	name := fmt.Sprintf("test-%d", os.Getpid())
	s := harness.TakeSnapshot(t, first, runtime.SnapshotOptions{Name: name})
	if len(s.Names) != 1 || s.Names[0] != name || s.Size == 0 || !strings.HasPrefix(s.ID, "sha256:") {
		t.Errorf("%+v", s)
	}
	if again, err := first.Snapshot(t.Context(), runtime.SnapshotOptions{}); err != nil || again.ID != s.ID {
		t.Errorf("the same tree: %+v, %v, want %s", again, err, s.ID)
	}
	second := harness.Create(t, runtime.Options{Snapshot: name})
	const look = `
		import fs from 'node:fs'; import { execSync } from 'node:child_process';
		const st = f => { const s = fs.lstatSync(f); return [(s.mode & 0o7777).toString(8), s.uid, s.mtimeMs === 1e12] };
		console.log(fs.readdirSync('app').join(), st('app'), st('app/data'), st('app/link')[2], fs.readlinkSync('app/link'), fs.readFileSync('app/second', 'utf8'), String(execSync('app/bin/run')).trim());
		console.log(fs.readFileSync('/home/node/.npmrc', 'utf8'), fs.existsSync('/tmp/not'), fs.readdirSync('.').join(), fs.readdirSync('copy').join());`
	res := harness.Run(t, second, look, runtime.RunOptions{})
	const want = "bin,data,link,second [ '750', 1000, true ] [ '644', 1000, true ] true /etc/passwd data ran\nx=y false app,copy from-the-host,y\n"
	if string(res.Stdout) != want {
		t.Errorf("got %q %q\nwant %q", res.Stdout, res.Stderr, want)
	}
	if _, err := harness.SnapshotStore(t).Remove(name); !errors.Is(err, rootfs.ErrInUse) {
		t.Errorf("removed while a runtime has it: %v", err)
	}
}

// A snapshot includes files and folders that the guest made unreadable for itself, with
// their modes.
func TestSnapshotOfClosedFiles(t *testing.T) {
	copied := harness.HostTree(t, map[string]string{"host": "h"})
	mounts := []runtime.Mount{{Source: copied, Target: "/workspace/copy", Access: runtime.CopyOnWrite}}
	first := harness.Create(t, runtime.Options{Mounts: mounts})
	const files = `locked/z locked/inner/y secret copy/mine copy/host`
	if res, err := first.Command(t.Context(), "sh", []string{"-c", `mkdir -p locked/inner; for f in ` + files + `; do echo $f >$f; done; mkfifo locked/pipe
		chmod 000 locked/inner/y locked/inner locked secret copy/mine copy/host copy .`}, runtime.RunOptions{}); err != nil || res.ExitCode != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	s := harness.TakeSnapshot(t, first, runtime.SnapshotOptions{})
	second := harness.Create(t, runtime.Options{Snapshot: s.ID})
	res, err := second.Command(t.Context(), "sh", []string{"-c", `cd /; stat -c '%a %u' workspace; cd workspace 2>/dev/null && echo open; chmod 700 /workspace; cd /workspace
		for f in locked secret copy; do stat -c '%a %u' $f; cat $f 2>/dev/null; chmod 700 $f; done
		stat -c %a locked/inner; chmod 700 locked/inner; for f in ` + files + `; do chmod u+r $f; cat $f; done; ls locked`}, runtime.RunOptions{Cwd: "/"})
	const want = "0 1000\n0 1000\n0 1000\n0 1000\n0\nlocked/z\nlocked/inner/y\nsecret\ncopy/mine\ncopy/host\ninner\nz\n"
	if err != nil || string(res.Stdout) != want {
		t.Errorf("%v, got %q %q\nwant %q", err, res.Stdout, res.Stderr, want)
	}
	if again, err := first.Snapshot(t.Context(), runtime.SnapshotOptions{}); err != nil || again.ID != s.ID {
		t.Errorf("the same tree: %+v, %v, want %s", again, err, s.ID)
	}
}

// Files that a snapshot cannot hold are an error, unless they are hidden below a mount.
func TestSnapshotOfForeignFiles(t *testing.T) {
	copied := harness.HostTree(t, map[string]string{"host": "h", "root/key": "k"})
	if err := errors.Join(os.Lchown(copied, 4711, 4711), os.Chmod(copied+"/root", 0o700)); err != nil {
		t.Fatal(err)
	}
	o := runtime.Options{Mounts: []runtime.Mount{{Source: copied, Target: "/workspace/copy", Access: runtime.CopyOnWrite}}}
	s, err := harness.Create(t, o).Snapshot(t.Context(), runtime.SnapshotOptions{})
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "/workspace/copy/root is not the guest's") {
		t.Errorf("%+v, %v", s, err)
	}
	o.Permissions.FS = policy.Scope{Default: policy.Allow, Rules: []policy.Rule{{Mode: policy.Deny, Paths: []string{"/workspace/copy/root/**", "/workspace/hidden/**"}}}}
	image, err := harness.SnapshotStore(t).Lookup(harness.TakeSnapshot(t, harness.Create(t, o), runtime.SnapshotOptions{}).ID)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(image.Root() + "/workspace/copy/root"); err != nil || len(list) > 0 {
		t.Errorf("hidden files: %v, %v", list, err)
	}
}

// Runtimes that start from one snapshot do not see each other's changes.
func TestSnapshotsAreIndependent(t *testing.T) {
	first := harness.Create(t, runtime.Options{})
	harness.Run(t, first, `import fs from 'node:fs'; fs.writeFileSync('shared', 'first'); fs.mkdirSync('d'); for (let i = 0; i < 100; i++) fs.writeFileSync('d/' + i, String(i))`, runtime.RunOptions{})
	s := harness.TakeSnapshot(t, first, runtime.SnapshotOptions{})
	var all sync.WaitGroup
	for i := range 8 {
		rt := harness.Create(t, runtime.Options{Snapshot: s.ID, Limits: runtime.Limits{Disk: 1 << 20}})
		all.Go(func() {
			res, err := rt.Run(t.Context(), fmt.Sprintf(`
				import fs from 'node:fs'; const before = fs.readFileSync('shared', 'utf8'); fs.writeFileSync('shared', 'mine %d'); fs.rmSync('d/%d'); fs.renameSync('d', 'e');
				let full; try { fs.writeFileSync('big', Buffer.alloc(2 << 20)) } catch (e) { full = e.code }
				console.log(before, fs.readFileSync('shared', 'utf8'), fs.readdirSync('e').length, full)`, i, i), runtime.RunOptions{})
			if err != nil {
				t.Error(err)
			} else if want := fmt.Sprintf("first mine %d 99 ENOSPC\n", i); string(res.Stdout) != want {
				t.Errorf("got %q %q, want %q", res.Stdout, res.Stderr, want)
			}
		})
	}
	all.Wait()
	if res := harness.Run(t, first, `console.log(require('fs').readFileSync('shared', 'utf8'))`, runtime.RunOptions{Name: "a.cjs"}); string(res.Stdout) != "first\n" {
		t.Errorf("the first has %q", res.Stdout)
	}
}

// Permissions apply to files from a snapshot.
func TestSnapshotUnderPermissions(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock)
	first := harness.Create(t, runtime.Options{})
	harness.Run(t, first, `import fs from 'node:fs'; fs.writeFileSync('f', 'f'); fs.mkdirSync('secret'); fs.writeFileSync('secret/key', 'k')`, runtime.RunOptions{})
	s := harness.TakeSnapshot(t, first, runtime.SnapshotOptions{})
	writes := []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}
	rt := harness.Create(t, runtime.Options{Snapshot: s.ID, Permissions: policy.Permissions{FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{
		{Mode: policy.Deny, Operations: writes, Paths: []string{"/**"}}, {Mode: policy.Deny, Paths: []string{"/workspace/secret/**"}},
	}}}})
	res := harness.Run(t, rt, `
		import fs from 'node:fs'; const t = f => { try { return f() ?? 'ok' } catch (e) { return e.code } };
		console.log(fs.readFileSync('f', 'utf8'), t(() => fs.writeFileSync('f', '')), t(() => fs.chmodSync('f', 0o777)), t(() => fs.readFileSync('secret/key')))`, runtime.RunOptions{})
	if want := "f EROFS EPERM EACCES\n"; string(res.Stdout) != want {
		t.Errorf("got %q %q, want %q", res.Stdout, res.Stderr, want)
	}
}

// A canceled snapshot is not stored, and returns the reason.
func TestSnapshotCanceled(t *testing.T) {
	empty, full := harness.Create(t, runtime.Options{}), harness.Create(t, runtime.Options{})
	harness.Run(t, full, `import fs from 'node:fs'; for (let i = 0; i < 5000; i++) fs.writeFileSync('f' + i, Buffer.alloc(1000))`, runtime.RunOptions{})
	name := fmt.Sprintf("given-up-%d", os.Getpid())
	over, cancel := context.WithCancel(t.Context())
	cancel()
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	for what, c := range map[string]struct {
		ctx  context.Context
		rt   *runtime.NodeRuntime
		want error
	}{
		"before, of nothing": {over, empty, context.Canceled}, "before": {over, full, context.Canceled}, "meanwhile": {soon, full, context.DeadlineExceeded},
	} {
		if s, err := c.rt.Snapshot(c.ctx, runtime.SnapshotOptions{Name: name}); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", what, s, err)
		}
	}
	if i, err := harness.SnapshotStore(t).Lookup(name); !errors.Is(err, rootfs.ErrNotFound) {
		t.Errorf("%+v, %v", i, err)
	}
}

// A guest that changes its tree while a snapshot is taken adds nothing from outside to it.
func TestSnapshotOfAHostileTree(t *testing.T) {
	given := harness.HostTree(t, map[string]string{"setuid": "", "deep/er": ""}) // from the host: a guest cannot set such bits
	if err := errors.Join(os.Chmod(given+"/setuid", 0o755|fs.ModeSetuid|fs.ModeSetgid), os.Chmod(given+"/deep", 0o777|fs.ModeSetuid|fs.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	rt := harness.Create(t, runtime.Options{Mounts: []runtime.Mount{{Source: given, Target: "/workspace/given", Access: runtime.CopyOnWrite}}})
	harness.Run(t, rt, `import fs from 'node:fs'; import { execSync } from 'node:child_process';
		fs.symlinkSync('/', 'root'); fs.symlinkSync('../../../../../../etc/shadow', 'shadow'); execSync('mkfifo pipe')`, runtime.RunOptions{})
	s := harness.TakeSnapshot(t, rt, runtime.SnapshotOptions{})
	image, err := harness.SnapshotStore(t).Lookup(s.ID)
	if err != nil {
		t.Fatal(err)
	}
	root := os.DirFS(image.Root())
	for name, want := range map[string]fs.FileMode{"workspace/root": fs.ModeSymlink, "workspace/shadow": fs.ModeSymlink, "workspace/given/setuid": 0o755, "workspace/given/deep": fs.ModeDir | 0o777} {
		info, err := os.Lstat(image.Root() + "/" + name)
		if err != nil || info.Mode()&^0o777 != want&^0o777 || want.Perm() != 0 && info.Mode().Perm() != want.Perm() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if _, err := fs.Stat(root, "workspace/pipe"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the pipe: %v", err)
	}
}

// A limit that the home folder uses up leaves nothing for /workspace.
func TestSnapshotBoundsAreExact(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	if res := harness.Run(t, rt, `import fs from 'node:fs'; fs.writeFileSync('/home/node/f', 'four'); fs.writeFileSync('g', 'x')`, runtime.RunOptions{}); res.ExitCode != 0 {
		t.Fatalf("%s", res.Stderr)
	}
	for _, o := range []runtime.SnapshotOptions{{Bytes: 4}, {Entries: 1}} {
		s, err := rt.Snapshot(t.Context(), o)
		if limit, ok := errors.AsType[*hostfs.LimitError](err); !ok || limit.Limit != max(o.Bytes, int64(o.Entries)) {
			t.Errorf("%+v: %+v, %v", o, s, err)
		}
	}
	harness.TakeSnapshot(t, rt, runtime.SnapshotOptions{Bytes: 5, Entries: 2})
}

func TestSnapshotsRefused(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	harness.Run(t, rt, `import fs from 'node:fs'; for (let i = 0; i < 20; i++) fs.writeFileSync('f' + i, Buffer.alloc(1000))`, runtime.RunOptions{})
	for name, o := range map[string]runtime.SnapshotOptions{"bytes": {Bytes: 10_000}, "entries": {Entries: 10}, "name": {Name: "../x"}} {
		if s, err := rt.Snapshot(t.Context(), o); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	for name, o := range map[string]runtime.SnapshotOptions{"limit Bytes: -1 bytes is less than 1 bytes": {Bytes: -1}, "limit Entries: -1 is less than 1": {Entries: -1}} {
		if s, err := rt.Snapshot(t.Context(), o); err == nil || err.Error() != "gaol: snapshot: "+name {
			t.Errorf("%+v, %v", s, err)
		}
	}
	if _, err := runtime.Create(t.Context(), harness.Options(runtime.Options{Snapshot: "nosuch"})); !errors.Is(err, rootfs.ErrNoSnapshot) {
		t.Errorf("an unknown one: %v", err)
	}
	for packages, want := range map[string]string{
		"snapshot:nosuch": `option NodeModules: snapshot "nosuch": no such snapshot`,
		"snapshot:":       `option NodeModules: "snapshot:" names no snapshot: write snapshot:NAME`,
		"packages":        `option NodeModules: "packages": neither an absolute path nor snapshot:NAME`,
	} {
		if _, err := runtime.Create(t.Context(), harness.Options(runtime.Options{NodeModules: packages})); err == nil || err.Error() != "gaol: create: "+want {
			t.Errorf("%q: %v, want %s", packages, err, want)
		}
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Snapshot(t.Context(), runtime.SnapshotOptions{}); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("of a closed runtime: %v", err)
	}
}
