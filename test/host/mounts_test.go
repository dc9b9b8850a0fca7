package host

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

func TestMounts(t *testing.T) {
	files := map[string]string{"in.txt": "from the host", "sub/x": "y"}
	dir, copied := harness.HostTree(t, files), harness.HostTree(t, files)
	rt := harness.Create(t, runtime.Options{Mounts: []runtime.Mount{
		{Source: dir, Target: "/workspace/ro"}, {Source: dir, Target: "/data/rw", Access: runtime.ReadWrite},
		{Source: copied, Target: "/workspace/cow", Access: runtime.CopyOnWrite}, {Source: filepath.Join(dir, "in.txt"), Target: "/workspace/one.txt"},
	}})
	res := harness.Run(t, rt, `
		import fs from 'node:fs'; const t = f => { try { return f() ?? 'ok' } catch (e) { return e.code } };
		console.log(fs.readFileSync('ro/in.txt', 'utf8'), fs.readFileSync('one.txt', 'utf8'), fs.statSync('/data/rw/in.txt').uid);
		console.log(t(() => fs.writeFileSync('ro/in.txt', '')), t(() => fs.writeFileSync('one.txt', '')), t(() => fs.writeFileSync('cow/in.txt', 'mine')), t(() => fs.rmSync('cow/sub', { recursive: true })), t(() => fs.writeFileSync('/data/rw/out.txt', 'out')));
		console.log(fs.readFileSync('cow/in.txt', 'utf8'), fs.readdirSync('cow'), fs.readFileSync('/data/rw/in.txt', 'utf8'), fs.readdirSync('/data/rw'))`, runtime.RunOptions{})
	const want = "from the host from the host 1000\nEROFS EROFS ok ok ok\nmine [ 'in.txt' ] from the host [ 'in.txt', 'out.txt', 'sub' ]\n"
	if string(res.Stdout) != want {
		t.Errorf("got %q %q\nwant %q", res.Stdout, res.Stderr, want)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "out.txt")); err != nil || string(text) != "out" {
		t.Errorf("out.txt: %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(copied, "sub/x")); err != nil {
		t.Error(err)
	}
	// The copy lasts as long as the runtime.
	if res := harness.Run(t, rt, `console.log(require('fs').readFileSync('cow/in.txt', 'utf8'))`, runtime.RunOptions{Name: "a.cjs"}); string(res.Stdout) != "mine\n" {
		t.Errorf("the next run reads %q", res.Stdout)
	}
}

// Permissions apply to mounts, too.
func TestMountsUnderPermissions(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock)
	dir := harness.HostTree(t, map[string]string{"in.txt": "in", "secret/key": "k"})
	deny := []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}
	rt := harness.Create(t, runtime.Options{
		Mounts: []runtime.Mount{{Source: dir, Target: "/data", Access: runtime.ReadWrite}, {Source: dir, Target: "/workspace/w", Access: runtime.ReadWrite}},
		Permissions: policy.Permissions{FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{
			{Mode: policy.Deny, Operations: deny, Paths: []string{"/**"}}, {Mode: policy.Allow, Operations: deny, Paths: []string{"/workspace/**"}},
			{Mode: policy.Deny, Paths: []string{"/workspace/w/secret/**"}},
		}}},
	})
	res := harness.Run(t, rt, `
		import fs from 'node:fs'; const t = f => { try { return f() ?? 'ok' } catch (e) { return e.code } };
		console.log(t(() => fs.writeFileSync('/data/in.txt', 'x')), t(() => fs.chmodSync('/data/in.txt', 0o777)), t(() => fs.utimesSync('/data/in.txt', 0, 0)), t(() => fs.writeFileSync('w/new', 'x')), t(() => fs.chmodSync('w/new', 0o600)));
		console.log(t(() => fs.readFileSync('w/secret/key')), t(() => fs.renameSync('w/secret', 'w/open')), String(fs.readFileSync('/data/secret/key')))`, runtime.RunOptions{})
	if want := "EROFS EROFS EROFS ok ok\nEACCES EBUSY k\n"; string(res.Stdout) != want {
		t.Errorf("got %q %q\nwant %q", res.Stdout, res.Stderr, want)
	}
}

// In a read-only root, writable mounts are writable, and mounts inside them have their own
// access.
func TestMountsInAReadOnlyRoot(t *testing.T) {
	dir := harness.HostTree(t, map[string]string{"f": "host's", "one": "1"})
	rt := harness.Create(t, runtime.Options{ReadOnlyRoot: true, Mounts: []runtime.Mount{
		{Source: dir, Target: "/workspace", Access: runtime.CopyOnWrite}, {Source: dir, Target: "/workspace/ro"}, {Source: dir, Target: "/data", Access: runtime.ReadWrite},
		{Source: dir, Target: "/home/node/cow", Access: runtime.CopyOnWrite}, {Source: filepath.Join(dir, "one"), Target: "/home/node/one", Access: runtime.ReadWrite},
	}})
	res := harness.Run(t, rt, `
		import fs from 'node:fs'; const t = f => { try { return f() ?? 'ok' } catch (e) { return e.code } };
		console.log(['/workspace', '/workspace/ro', '/data', '/home/node/cow', '/home/node', '/tmp'].map(d => t(() => fs.writeFileSync(d + '/new', ''))).join(' '), t(() => fs.writeFileSync('/home/node/one', '2')))`, runtime.RunOptions{})
	if want := "ok EROFS ok ok EROFS EROFS ok\n"; string(res.Stdout) != want {
		t.Errorf("got %q %q, want %q", res.Stdout, res.Stderr, want)
	}
	entries, err := os.ReadDir(dir)
	if text, err2 := os.ReadFile(filepath.Join(dir, "one")); errors.Join(err, err2) != nil || len(entries) != 3 || string(text) != "2" {
		t.Errorf("the host has %v, %q, %v", entries, text, errors.Join(err, err2))
	}
}

// ES modules and CommonJS find packages, also those behind the links that pnpm makes.
func TestNodeModules(t *testing.T) {
	dir := harness.HostTree(t, map[string]string{
		"plain/package.json": `{"name":"plain","exports":{"import":"./m.mjs","require":"./c.cjs"}}`, "plain/m.mjs": `export default 'esm'`, "plain/c.cjs": `module.exports = 'cjs'`,
		".pnpm/dep@1.0.0/node_modules/dep/index.js": `module.exports = 'dep'`,
		".pnpm/linked@1.0.0/node_modules/dep":       "-> ../../dep@1.0.0/node_modules/dep", ".pnpm/linked@1.0.0/node_modules/linked/index.js": `module.exports = 'linked with ' + require('dep')`,
		"linked": "-> .pnpm/linked@1.0.0/node_modules/linked", "out": "-> /etc", "@scope/p/index.js": `module.exports = 'scoped'`,
	})
	for _, cwd := range []string{"", "/srv/app"} {
		rt := harness.Create(t, runtime.Options{NodeModules: dir, Cwd: cwd})
		res := harness.Run(t, rt, `
			import plain from 'plain'; import linked from 'linked'; import scoped from '@scope/p'; import { createRequire } from 'node:module'; import fs from 'node:fs';
			console.log(plain, createRequire(import.meta.url)('plain'), linked, scoped);
			try { fs.writeFileSync('node_modules/x', '') } catch (e) { console.log(e.code) }
			console.log(fs.readdirSync('node_modules/out').includes('shadow'))`, runtime.RunOptions{})
		if want := "esm cjs linked with dep scoped\nEROFS\nfalse\n"; string(res.Stdout) != want {
			t.Errorf("%s: got %q %q\nwant %q", cwd, res.Stdout, res.Stderr, want)
		}
	}
}

// Programs and working directories below the parent of NodeModulesPath find its packages, and others
// do not.
func TestNodeModulesPath(t *testing.T) {
	dir := harness.HostTree(t, map[string]string{"plain/package.json": `{"name":"plain","exports":{"import":"./m.mjs","require":"./c.cjs"}}`, "plain/m.mjs": `export default 'esm'`, "plain/c.cjs": `module.exports = 'cjs'`})
	for _, at := range []string{"/tmp", "/app"} {
		rt := harness.Create(t, runtime.Options{NodeModules: dir, NodeModulesPath: at + "/node_modules", Files: map[string][]byte{
			at + "/sub/file.cjs": []byte(`console.log(require('plain'))`), at + "/near.mjs": []byte(`export default 'near'`),
		}})
		for _, tc := range []struct {
			code, name, cwd, want string
		}{
			{`import p from 'plain'; import near from './near.mjs'; console.log(p, near, process.cwd(), import.meta.filename)`, at + "/program-1.mjs", "", "esm near /workspace " + at + "/program-1.mjs\n"},
			{`const p: string = require('plain'); console.log(p, __filename, process.cwd())`, at + "/none/program.cts", at + "/sub", "cjs " + at + "/none/program.cts " + at + "/sub\n"},
			{`import p from 'plain'; console.log(p)`, "", at + "/sub", "esm\n"},
			{`import { execFileSync } from 'node:child_process'; console.log(String(execFileSync(process.execPath, ['file.cjs'])).trim())`, "", at + "/sub", "cjs\n"},
			{`console.log(await import('plain').catch(err => err.code))`, "", "", "ERR_MODULE_NOT_FOUND\n"},
			{`import fs from 'node:fs'; try { fs.writeFileSync('` + at + `/node_modules/x', '') } catch (e) { console.log(e.code) }`, "", "", "EROFS\n"},
		} {
			res := harness.Run(t, rt, tc.code, runtime.RunOptions{Name: tc.name, Cwd: tc.cwd})
			if string(res.Stdout) != tc.want {
				t.Errorf("%s in %q: got %q %s\nwant %q", tc.name, tc.cwd, res.Stdout, res.Stderr, tc.want)
			}
		}
	}
	for _, path := range []string{"relative", "/a/../b", "/proc/node_modules"} {
		if _, err := runtime.Create(t.Context(), harness.Options(runtime.Options{NodeModules: dir, NodeModulesPath: path})); err == nil {
			t.Errorf("%s is accepted", path)
		}
	}
	if _, err := runtime.Create(t.Context(), harness.Options(runtime.Options{NodeModulesPath: "/app/node_modules"})); err == nil {
		t.Error("a path without packages is accepted")
	}
	rt := harness.Create(t, runtime.Options{})
	for _, name := range []string{"a/b.mjs", "/a//b.mjs", "/a/../b.mjs", "./b.mjs", "/x/", "/a\x00/b.mjs"} {
		if _, err := rt.Run(t.Context(), "", runtime.RunOptions{Name: name}); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
}

func TestFiles(t *testing.T) {
	rt := harness.Create(t, runtime.Options{ReadOnlyRoot: true, Files: map[string][]byte{
		"/workspace/lib/a.mjs": []byte(`export const a = 1`), "/etc/app.conf": {0, 255}, "/dev/shm/shared": []byte("s"),
	}, Folders: map[string]fs.FS{"/workspace/src": fstest.MapFS{
		"x/run": {Data: []byte("#!/bin/sh\necho ran"), Mode: 0o700}, "b.cjs": {Data: []byte("module.exports = 2")},
	}}})
	res := harness.Run(t, rt, `
		import { a } from './lib/a.mjs'; import fs from 'node:fs'; const t = f => { try { return f() ?? 'ok' } catch (e) { return e.code } };
		import b from './src/b.cjs'; import { execSync } from 'node:child_process';
		console.log(a, b, fs.readFileSync('/etc/app.conf'), String(fs.readFileSync('/dev/shm/shared')), fs.statSync('lib').uid, String(execSync('src/x/run')).trim());
		console.log(['/workspace/x', '/tmp/x', '/home/node/x', '/var/tmp/x', '/dev/shm/x', '/workspace/lib/a.mjs'].map(f => t(() => fs.writeFileSync(f, ''))).join(' '))`, runtime.RunOptions{})
	if want := "1 2 <Buffer 00 ff> s 1000 ran\nEROFS EROFS EROFS EROFS EROFS EROFS\n"; string(res.Stdout) != want {
		t.Errorf("got %q %q\nwant %q", res.Stdout, res.Stderr, want)
	}
}

func many(n int) fs.FS {
	m := fstest.MapFS{}
	for i := range n {
		m[strconv.Itoa(i)] = &fstest.MapFile{}
	}
	return m
}

func TestMountsRefused(t *testing.T) {
	dir := harness.HostTree(t, map[string]string{"f": ""})
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/proc", link); err != nil {
		t.Fatal(err)
	}
	mount := func(source, target string) runtime.Options {
		return runtime.Options{Mounts: []runtime.Mount{{Source: source, Target: target}}}
	}
	for _, tc := range []struct {
		name, says string
		opts       runtime.Options
	}{
		{"root", "all that the host has", mount("/", "/data")},
		{"proc", "it is proc", mount("/proc", "/data")},
		{"proc by a link", "it is proc", mount(link, "/data")},
		{"sys", "it is sysfs", mount("/sys", "/data")},
		{"cgroups", "can't be shown", mount("/sys/fs/cgroup", "/data")},
		{"dev", "/dev", mount("/dev", "/data")},
		{"a device", "neither", mount("/dev/null", "/data")},
		{"the state", "/run/gaol", mount("/run/gaol", "/data")},
		{"above the state", "/run/gaol", mount("/run", "/data")},
		{"the store", "has to do with", mount(filepath.Join(cmp.Or(os.Getenv(harness.StoreVar), "/var/lib/gaol"), "images"), "/data")},
		{"above the usual store", "has to do with", mount("/var/lib", "/data")},
		{"relative", "not an absolute path", mount("x", "/data")},
		{"missing", "no such file", mount("/nosuch", "/data")},
		{"on root", "/", mount(dir, "/")},
		{"in proc", "/proc/x: /proc is the jail's own", mount(dir, "/proc/x")},
		{"on dev", "/dev: /dev is the jail's own", mount(dir, "/dev")},
		{"on gaol's own", "/usr/libexec/gaol is the jail's own", mount(dir, "/usr/libexec/gaol/x")},
		{"a copy of a file", "only a folder can be copy-on-write: mount it read-only", runtime.Options{Mounts: []runtime.Mount{{Source: filepath.Join(dir, "f"), Target: "/x", Access: runtime.CopyOnWrite}}}},
		{"a file in proc", "/proc/x: /proc is the jail's own", runtime.Options{Files: map[string][]byte{"/proc/x": nil}}},
		{"a file in dev", "/dev is the jail's own", runtime.Options{Files: map[string][]byte{"/dev/null": nil}}},
		{"a file in sys", "/sys is the jail's own", runtime.Options{Files: map[string][]byte{"/sys/x/y": nil}}},
		{"a folder in proc", "/proc is the jail's own", runtime.Options{Folders: map[string]fs.FS{"/": fstest.MapFS{"proc/x": {}}}}},
		{"a program of gaol's", "/usr/libexec/gaol is the jail's own", runtime.Options{Files: map[string][]byte{"/usr/libexec/gaol/enter": nil}}},
		{"unclean", "../", mount(dir, "/data/../x")},
		{"twice", "twice", runtime.Options{NodeModules: dir, Mounts: []runtime.Mount{{Source: dir, Target: "/workspace/node_modules"}}}},
		{"no access", "access 7 is not valid", runtime.Options{Mounts: []runtime.Mount{{Source: dir, Target: "/d", Access: 7}}}},
		{"a file's path", "Files", runtime.Options{Files: map[string][]byte{"x": nil}}},
		{"a folder's path", "Folders", runtime.Options{Folders: map[string]fs.FS{"x": fstest.MapFS{}}}},
		{"too much", "64 KiB in all, the limit of the disk", runtime.Options{Limits: runtime.Limits{Disk: 64 << 10}, Files: map[string][]byte{"/a": make([]byte, 64<<10), "/b": {1}}}},
		{"too many", "limit of the tree", runtime.Options{Limits: runtime.Limits{Files: 16}, Folders: map[string]fs.FS{"/a": many(17)}}},
		{"a file twice", "/d/a twice", runtime.Options{Files: map[string][]byte{"/d/a": nil}, Folders: map[string]fs.FS{"/d": fstest.MapFS{"a": {}}}}},
		{"a link", "invalid", runtime.Options{Folders: map[string]fs.FS{"/d": fstest.MapFS{"l": {Mode: fs.ModeSymlink}}}}},
	} {
		if tc.opts.Limits.Files != 0 && !harness.Needs(t, runtime.FeatureFiles) {
			continue
		}
		err := harness.CreateError(t, harness.Options(tc.opts))
		if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q in it", tc.name, err, tc.says)
		}
	}
}
