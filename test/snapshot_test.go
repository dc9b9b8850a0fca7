package test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"

	"gaol/policy"
	"gaol/rootfs"
	"gaol/runtime"
)

// snapshotStore is where the snapshots of the tests are.
func snapshotStore(t *testing.T) *rootfs.Store {
	t.Helper()
	store, err := rootfs.Open(os.Getenv(storeVar))
	if err == nil {
		store, err = store.Snapshots()
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// taken takes a snapshot that is removed when the test ends.
func taken(t *testing.T, rt *runtime.NodeRuntime, o runtime.SnapshotOptions) *runtime.Snapshot {
	t.Helper()
	s, err := rt.Snapshot(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := snapshotStore(t).Remove(s.ID); err != nil && !errors.Is(err, rootfs.ErrNotFound) {
			t.Error(err)
		}
	})
	return s
}

const makeTree = `
	import fs from 'node:fs';
	fs.mkdirSync('app/bin', { recursive: true }); fs.writeFileSync('app/data', 'data'); fs.writeFileSync('app/bin/run', '#!/bin/sh\necho ran', { mode: 0o755 });
	fs.symlinkSync('/etc/passwd', 'app/link'); fs.linkSync('app/data', 'app/second'); fs.chmodSync('app', 0o750); fs.utimesSync('app/data', 1e9, 1e9);
	fs.writeFileSync('/home/node/.npmrc', 'x=y'); fs.writeFileSync('/tmp/not', ''); fs.writeFileSync('node_modules/x', ''); fs.writeFileSync('copy/y', '')`

// A snapshot has what the guest's own folders held, and nothing else of its tree.
func TestSnapshot(t *testing.T) {
	host, copied := hostTree(t, map[string]string{"from-the-host": ""}), hostTree(t, map[string]string{"from-the-host": ""})
	first := create(t, runtime.Options{Mounts: []runtime.Mount{
		{Source: host, Target: "/workspace/node_modules", Access: runtime.ReadWrite}, {Source: copied, Target: "/workspace/copy", Access: runtime.CopyOnWrite},
	}})
	if res := run(t, first, makeTree, runtime.RunOptions{}); res.ExitCode != 0 {
		t.Fatalf("%s", res.Stderr)
	}
	name := fmt.Sprintf("test-%d", os.Getpid())
	s := taken(t, first, runtime.SnapshotOptions{Name: name})
	if len(s.Names) != 1 || s.Names[0] != name || s.Size == 0 || !strings.HasPrefix(s.ID, "sha256:") {
		t.Errorf("%+v", s)
	}
	if again, err := first.Snapshot(t.Context(), runtime.SnapshotOptions{}); err != nil || again.ID != s.ID {
		t.Errorf("the same tree: %+v, %v, want %s", again, err, s.ID)
	}
	second := create(t, runtime.Options{Snapshot: name})
	const look = `
		import fs from 'node:fs'; import { execSync } from 'node:child_process';
		const st = f => { const s = fs.lstatSync(f); return [(s.mode & 0o7777).toString(8), s.uid, s.mtimeMs === 1e12] };
		console.log(fs.readdirSync('app').join(), st('app'), st('app/data'), fs.readlinkSync('app/link'), fs.readFileSync('app/second', 'utf8'), String(execSync('app/bin/run')).trim());
		console.log(fs.readFileSync('/home/node/.npmrc', 'utf8'), fs.existsSync('/tmp/not'), fs.readdirSync('.').join(), fs.readdirSync('copy').join());`
	res := run(t, second, look, runtime.RunOptions{})
	const want = "bin,data,link,second [ '750', 1000, false ] [ '644', 1000, true ] /etc/passwd data ran\nx=y false app,copy from-the-host,y\n"
	if string(res.Stdout) != want {
		t.Errorf("got %q %q\nwant %q", res.Stdout, res.Stderr, want)
	}
	if err := snapshotStore(t).Remove(name); !errors.Is(err, rootfs.ErrInUse) {
		t.Errorf("removed while a runtime has it: %v", err)
	}
}

// Runtimes made of one snapshot share it and nothing more.
func TestSnapshotsAreApart(t *testing.T) {
	first := create(t, runtime.Options{})
	run(t, first, `import fs from 'node:fs'; fs.writeFileSync('shared', 'first'); fs.mkdirSync('d'); for (let i = 0; i < 100; i++) fs.writeFileSync('d/' + i, String(i))`, runtime.RunOptions{})
	s := taken(t, first, runtime.SnapshotOptions{})
	var all sync.WaitGroup
	for i := range 8 {
		rt := create(t, runtime.Options{Snapshot: s.ID, Limits: runtime.Limits{Disk: 1 << 20}})
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
	if res := run(t, first, `console.log(require('fs').readFileSync('shared', 'utf8'))`, runtime.RunOptions{Name: "a.cjs"}); string(res.Stdout) != "first\n" {
		t.Errorf("the first has %q", res.Stdout)
	}
}

// Permissions hold over what comes from a snapshot.
func TestSnapshotUnderPermissions(t *testing.T) {
	first := create(t, runtime.Options{})
	run(t, first, `import fs from 'node:fs'; fs.writeFileSync('f', 'f'); fs.mkdirSync('secret'); fs.writeFileSync('secret/key', 'k')`, runtime.RunOptions{})
	s := taken(t, first, runtime.SnapshotOptions{})
	writes := []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}
	rt := create(t, runtime.Options{Snapshot: s.ID, Permissions: policy.Permissions{FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{
		{Mode: policy.Deny, Operations: writes, Paths: []string{"/**"}}, {Mode: policy.Deny, Paths: []string{"/workspace/secret/**"}},
	}}}})
	res := run(t, rt, `
		import fs from 'node:fs'; const t = f => { try { return f() ?? 'ok' } catch (e) { return e.code } };
		console.log(fs.readFileSync('f', 'utf8'), t(() => fs.writeFileSync('f', '')), t(() => fs.chmodSync('f', 0o777)), t(() => fs.readFileSync('secret/key')))`, runtime.RunOptions{})
	if want := "f EROFS EPERM EACCES\n"; string(res.Stdout) != want {
		t.Errorf("got %q %q, want %q", res.Stdout, res.Stderr, want)
	}
}

// What the guest does while a snapshot is taken does not get anything else into it.
func TestSnapshotOfAHostileTree(t *testing.T) {
	rt := create(t, runtime.Options{})
	run(t, rt, `import fs from 'node:fs'; import { execSync } from 'node:child_process';
		fs.symlinkSync('/', 'root'); fs.symlinkSync('../../../../../../etc/shadow', 'shadow'); execSync('mkfifo pipe; mkdir -p deep/er'); fs.chmodSync('deep', 0o6777); fs.writeFileSync('setuid', '', { mode: 0o755 }); fs.chmodSync('setuid', 0o6755)`, runtime.RunOptions{})
	s := taken(t, rt, runtime.SnapshotOptions{})
	image, err := snapshotStore(t).Lookup(s.ID)
	if err != nil {
		t.Fatal(err)
	}
	root := os.DirFS(image.Root())
	for name, want := range map[string]fs.FileMode{"workspace/root": fs.ModeSymlink, "workspace/shadow": fs.ModeSymlink, "workspace/setuid": 0o755, "workspace/deep": fs.ModeDir | 0o777} {
		info, err := os.Lstat(image.Root() + "/" + name)
		if err != nil || info.Mode()&^0o777 != want&^0o777 || want.Perm() != 0 && info.Mode().Perm() != want.Perm() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if _, err := fs.Stat(root, "workspace/pipe"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the pipe: %v", err)
	}
}

func TestSnapshotsRefused(t *testing.T) {
	rt := create(t, runtime.Options{})
	run(t, rt, `import fs from 'node:fs'; for (let i = 0; i < 20; i++) fs.writeFileSync('f' + i, Buffer.alloc(1000))`, runtime.RunOptions{})
	for name, o := range map[string]runtime.SnapshotOptions{"bytes": {Bytes: 10_000}, "entries": {Entries: 10}, "name": {Name: "../x"}} {
		if s, err := rt.Snapshot(t.Context(), o); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if _, err := runtime.Create(t.Context(), ours(runtime.Options{Snapshot: "nosuch"})); !errors.Is(err, rootfs.ErrNotFound) {
		t.Errorf("an unknown one: %v", err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Snapshot(t.Context(), runtime.SnapshotOptions{}); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("of a closed runtime: %v", err)
	}
}
