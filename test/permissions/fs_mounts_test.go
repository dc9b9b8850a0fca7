package permissions

import (
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// Mounts and files from the host are hidden if everything is hidden.
func TestPermissionFSMountsHidden(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, policy.Strict())
	dir := harness.HostTree(t, map[string]string{"secret": "text", "s/l": "-> secret"})
	files := map[string][]byte{"/workspace/f": nil, "/workspace/s/f": nil, "/home/node/f": nil, "/tmp/x/f": nil, "/opt/x/f": nil}
	for name, p := range map[string]policy.Permissions{
		"strict": policy.Strict(), "one shown": fsRules(t, "deny", `{"mode":"allow","paths":["/workspace/shown/**","/tmp/x/shown/**"]}`),
	} {
		rt := harness.Create(t, runtime.Options{Permissions: p, Files: files, Mounts: []runtime.Mount{{Source: dir, Target: "/data"}, {Source: dir, Target: "/srv/rw", Access: runtime.ReadWrite}}})
		got := attempts(t, rt, `import fs from 'node:fs';
			for (const path of ['/workspace/f', '/workspace/s', '/workspace/s/f', '/home/node/f', '/tmp/x/f', '/data/secret', '/data/s/l', '/srv/rw/secret'])
				await attempt(path, () => { fs.lstatSync(path) });
			for (const path of ['/workspace', '/home/node', '/data']) await attempt('watch ' + path, () => fs.watch(path).close());`, runtime.RunOptions{})
		for what, code := range got {
			if code != "EACCES" && code != "ENOENT" {
				t.Errorf("%s: %s: %s", name, what, code)
			}
		}
	}
}

// Modes cannot be changed if chmod is denied, although Landlock, which enforces the rest,
// has no right for it. Files written there can be read.
func TestPermissionFSMountsChmod(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, policy.Workspace("/workspace"))
	rt := harness.Create(t, runtime.Options{
		Permissions: policy.Workspace("/workspace"),
		Files:       map[string][]byte{"/home/node/d/f": []byte("x"), "/tmp/d/f": []byte("x"), "/opt/d/f": []byte("x"), "/workspace/d/f": []byte("x")},
	})
	got := attempts(t, rt, `import fs from 'node:fs';
		for (const d of ['/home/node/d', '/tmp/d', '/opt/d', '/workspace/d']) {
			await attempt(d, () => fs.chmodSync(d, 0o700));
			await attempt(d + '/f', () => fs.chmodSync(d + '/f', 0o600));
			await attempt('read ' + d, () => fs.readFileSync(d + '/f', 'utf8'));
		}`, runtime.RunOptions{})
	wantSame(t, "chmod", map[string]string{
		"/home/node/d": "EPERM", "/home/node/d/f": "EPERM", "read /home/node/d": "x", "/tmp/d": "EPERM", "/tmp/d/f": "EPERM", "read /tmp/d": "x",
		"/opt/d": "EPERM", "/opt/d/f": "EPERM", "read /opt/d": "x", "/workspace/d": "ok", "/workspace/d/f": "ok", "read /workspace/d": "x",
	}, got)
}

// A mount of which a part is allowed for writing can be written there. Mounts inside others
// keep their own access.
func TestPermissionFSMountsWritable(t *testing.T) {
	const write = `import fs from 'node:fs';
		for (const d of ['/data', '/data/s', '/data/ro', '/data/ro/s', '/srv/ro', '/srv/ro/rw']) await attempt(d, () => fs.writeFileSync(d + '/new', ''));`
	for _, tc := range []struct {
		name string
		p    policy.Permissions
		want map[string]string
	}{
		{"parts", fsRules(t, "deny", `{"mode":"allow","paths":["/data/s/**","/data/ro/s/**","/srv/ro/rw/**"]}`),
			map[string]string{"/data": "EACCES", "/data/s": "ok", "/data/ro": "EACCES", "/data/ro/s": "EROFS", "/srv/ro": "EACCES", "/srv/ro/rw": "ok"}},
		{"all but a folder", fsRules(t, "allow", `{"mode":"deny","operations":`+changes+`,"paths":["/workspace/lib/**"]}`),
			map[string]string{"/data": "ok", "/data/s": "ok", "/data/ro": "EROFS", "/data/ro/s": "EROFS", "/srv/ro": "EROFS", "/srv/ro/rw": "ok"}},
	} {
		if tc.name == "parts" && !harness.Needs(t, runtime.FeatureLandlock) {
			continue
		}
		tree := map[string]string{"s/f": "", "rw/f": "", "ro/f": ""}
		rt := harness.Create(t, runtime.Options{Permissions: tc.p, Mounts: []runtime.Mount{
			{Source: harness.HostTree(t, tree), Target: "/data", Access: runtime.ReadWrite}, {Source: harness.HostTree(t, tree), Target: "/data/ro"},
			{Source: harness.HostTree(t, tree), Target: "/srv/ro"}, {Source: harness.HostTree(t, tree), Target: "/srv/ro/rw", Access: runtime.ReadWrite},
		}})
		wantSame(t, tc.name, tc.want, attempts(t, rt, write, runtime.RunOptions{}))
	}
}

// A file with more permissions than its folder loses them under another name.
func TestPermissionFSGrantedFile(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock)
	rt := harness.Create(t, runtime.Options{
		Permissions: fsRules(t, "deny", `{"mode":"allow","operations":["read","readdir"],"paths":["/**"]},{"mode":"allow","operations":`+changes+`,"paths":["/workspace/**"]},
			{"mode":"allow","operations":["execute"],"paths":["/workspace/d/prog"]}`),
		Files: map[string][]byte{"/workspace/d/prog": native(t, "nothing", "-static", "-nostdlib")},
	})
	got := attempts(t, rt, `import fs from 'node:fs'; import { spawnSync } from 'node:child_process';
		const go = path => { const { error } = spawnSync(path); if (error) throw error };
		await attempt('chmod', () => fs.chmodSync('d/prog', 0o755));
		await attempt('execute', () => go('d/prog'));
		await attempt('link', () => { fs.linkSync('d/prog', 'd/linked'); go('d/linked') });
		await attempt('rename', () => { fs.renameSync('d/prog', 'd/moved'); go('d/moved') });
		await attempt('rename the folder', () => { fs.renameSync('d', 'e'); go('e/prog') });
		await attempt('write', () => fs.appendFileSync('d/prog', 'x'));`, runtime.RunOptions{})
	wantSame(t, "file", map[string]string{"chmod": "ok", "execute": "ok", "link": "EXDEV", "rename": "EBUSY", "rename the folder": "EBUSY", "write": "ok"}, got)
}
