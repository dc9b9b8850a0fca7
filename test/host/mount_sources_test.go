package host

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/vfs/hostfs"
)

// A file that a guest creates in a folder of the host belongs to the folder's owner, and has no
// set-id bits.
func TestMountSetID(t *testing.T) {
	dir := t.TempDir()
	rt := harness.Create(t, runtime.Options{Mounts: []runtime.Mount{{Source: dir, Target: "/data", Access: runtime.ReadWrite}}})
	res := harness.Run(t, rt, `
		import fs from 'node:fs'; import { spawnSync } from 'node:child_process';
		fs.writeFileSync('/data/a', '#!/bin/sh\n', { mode: 0o755 });
		const tries = {
			chmod: () => fs.chmodSync('/data/a', 0o4755), fchmod: () => fs.fchmodSync(fs.openSync('/data/a'), 0o2755),
			folder: () => fs.chmodSync('/data', 0o2777), open: () => fs.closeSync(fs.openSync('/data/b', 'w', 0o4755)),
			made: () => fs.mkdirSync('/data/d', 0o6777),
		};
		console.log(Object.keys(tries).map(k => { try { tries[k](); return 'ok' } catch (e) { return e.code } }).join(' '));
		console.log(spawnSync('chmod', ['u+s', '/data/a']).status !== 0, spawnSync('install', ['-m', '6755', '/data/a', '/data/c']).status !== 0);`, runtime.RunOptions{})
	if want := "EPERM EPERM EPERM EPERM ok\ntrue true\n"; string(res.Stdout) != want {
		t.Errorf("%s%s, want %s", res.Stdout, res.Stderr, want)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A file that the host replaces in a copy-on-write mount is not copied first.
func TestMountReplacedByHost(t *testing.T) {
	const size = 8 << 20
	dir := harness.HostTree(t, map[string]string{"large": strings.Repeat("x", size), "other": strings.Repeat("y", size)})
	rt := harness.Create(t, runtime.Options{
		Mounts: []runtime.Mount{{Source: dir, Target: "/data", Access: runtime.CopyOnWrite}},
		Limits: runtime.Limits{Disk: size / 2},
	})
	if err := rt.FS().WriteFile("/data/large", []byte("small"), hostfs.WriteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := rt.FS().WriteFrom("/data/other", strings.NewReader("too"), hostfs.WriteOptions{}); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"large": "small", "other": "too"} {
		if text, err := rt.FS().ReadFile("/data/" + name); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() != size {
			t.Errorf("the host's %s: %v, %v", name, info, err)
		}
	}
	res := harness.Run(t, rt, `import fs from 'node:fs'; fs.chmodSync('/data/large', 0o444)`, runtime.RunOptions{})
	if err := rt.FS().WriteFile("/data/large", nil, hostfs.WriteOptions{}); !errors.Is(err, fs.ErrPermission) || res.ExitCode != 0 {
		t.Errorf("a file that the guest can't write to: %v, %s", err, res.Stderr)
	}
}

const reach = `
	import net from 'node:net';
	const call = path => new Promise(done => net.connect(path).on('data', d => done(String(d))).on('error', e => done(e.code)));
	const own = new Promise(done => net.createServer(c => c.end('own')).unref().on('error', e => done(e.code)).listen('/tmp/own', () => done(call('/tmp/own'))));
	console.log(await call((await import('node:fs')).existsSync('/work/node_modules/socket') ? '/work/node_modules/socket' : '/data/socket'), await own);
	import { fork, spawnSync } from 'node:child_process';
	console.log(spawnSync('echo', ['hello']).stdout + (await new Promise(done => {
		const c = fork('/tmp/child.cjs'); c.on('message', m => { c.disconnect(); done(m) });
	})))`

// Unix sockets of the host in a mounted folder are out of reach, unless the options allow
// them. Programs in the jail can still use sockets among themselves where the mount allows
// it.
func TestMountSockets(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(filepath.Join(dir, "socket"), 0o777); err != nil {
		t.Fatal(err)
	}
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = c.Write([]byte("host"))
			c.Close()
		}
	}()
	child := map[string][]byte{"/tmp/child.cjs": []byte(`process.send('forked')`)}
	for _, tc := range []struct {
		name string
		o    runtime.Options
		want string
	}{
		{"no mounts", runtime.Options{}, "ENOENT own\n"},
		{"packages", runtime.Options{Cwd: "/work", NodeModules: dir}, "ECONNREFUSED own\n"},
		{"read-only", runtime.Options{Mounts: []runtime.Mount{{Source: dir, Target: "/data"}}}, "EACCES EACCES\n"},
		{"to write", runtime.Options{Mounts: []runtime.Mount{{Source: dir, Target: "/data", Access: runtime.ReadWrite}}}, "EACCES EACCES\n"},
		{"a copy", runtime.Options{Mounts: []runtime.Mount{{Source: dir, Target: "/data", Access: runtime.CopyOnWrite}}}, "ECONNREFUSED own\n"},
		{"packages beside a folder", runtime.Options{NodeModules: dir, Mounts: []runtime.Mount{{Source: dir, Target: "/data"}}}, "EACCES EACCES\n"},
		{"asked for", runtime.Options{UnixSockets: true, Mounts: []runtime.Mount{{Source: dir, Target: "/data"}}}, "host own\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.o.Files = child
			rt := harness.Create(t, tc.o)
			res := harness.Run(t, rt, reach, runtime.RunOptions{})
			if got := string(res.Stdout); got != tc.want+"hello\nforked\n" {
				t.Errorf("%s%s, want %s", got, res.Stderr, tc.want)
			}
			denied := len(res.Denials) == 1 && res.Denials[0].Rule == "mounts" && res.Denials[0].Target == "AF_UNIX SOCK_STREAM"
			if (strings.HasPrefix(tc.want, "EACCES") && harness.ReportsDenials()) != denied {
				t.Errorf("denials: %+v", res.Denials)
			}
		})
	}
}
