package permissions

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
)

const changes = `["write","create_dir","rm","rename","symlink","chmod","truncate"]`

// changing are the ways of around.mjs that change the place, and the errno of a read-only
// place. A mount cannot be moved, nor can anything be moved out of the folders that lead to
// it.
var changing = map[string][]string{
	"make in it": {"EROFS"}, "make a folder in it": {"EROFS"}, "link in it": {"EROFS"}, "link into it": {"EROFS", "EXDEV"}, "move into it": {"EROFS", "EXDEV"},
	"chmod": {"EROFS"}, "chmod in a child": {"Read-only"}, "utimes": {"EROFS"},
	"remove it alone": {"EBUSY"}, "move away": {"EBUSY", "EXDEV"}, "move beside": {"EBUSY"}, "move its parent away": {"EBUSY", "EXDEV"}, "move its first parent away": {"EBUSY"},
	"move a link over it": {"EBUSY", "EXDEV", "EISDIR"}, "move over it": {"EBUSY", "EXDEV"}, "a link for it": {"EEXIST"}, "anew, of the other kind": {"EEXIST", "EISDIR", "EROFS"},
	"anew, after its first parent": {"EBUSY"},
}

// A place without write permission stays as it is, whatever is done to it or around it.
func TestPermissionFSReadOnly(t *testing.T) {
	free := harness.Create(t, runtime.Options{})
	rt := harness.Create(t, runtime.Options{Permissions: fsRules(t, "allow", `{"mode":"deny","operations":`+changes+`,"paths":[
		"/workspace/lib/**","/workspace/a/b/lib/**","/tmp/lib/**","/workspace/.conf","/workspace/x/y/.conf"]}`)})
	for _, d := range []withheld{
		{Top: "/workspace", Parts: []string{"lib"}}, {Top: "/workspace", Parts: []string{"a", "b", "lib"}}, {Top: "/tmp", Parts: []string{"lib"}},
		{Top: "/workspace", Parts: []string{".conf"}, File: true}, {Top: "/workspace", Parts: []string{"x", "y", ".conf"}, File: true},
	} {
		t.Run(d.Top+" "+d.Parts[0], func(t *testing.T) {
			d.Ways = slices.Sorted(maps.Keys(changing))
			if d.File { // an empty folder contains no file to try this with
				d.Ways = append(d.Ways, "write", "append", "truncate")
			}
			for way, code := range tryWays(t, free, d, runtime.RunOptions{}) {
				if code != "" {
					t.Errorf("where it is allowed, %s: %s: this test proves nothing", way, code)
				}
			}
			for way, code := range tryWays(t, rt, d, runtime.RunOptions{}) {
				want := changing[way]
				if want == nil {
					want = []string{"EROFS"}
				}
				if !slices.ContainsFunc(want, func(w string) bool { return strings.Contains(code, w) }) {
					t.Errorf("%s: %q, want one of %q", way, code, want)
				}
			}
			got := value[string](t, rt, `import fs from 'node:fs'; const [, , path, file] = process.argv;
				__return(file === 'true' ? fs.readFileSync(path, 'utf8') : fs.readdirSync(path).join())`,
				runtime.RunOptions{Args: []string{d.Top + "/" + strings.Join(d.Parts, "/"), strconv.FormatBool(d.File)}})
			if got != "" {
				t.Errorf("now it has %q", got)
			}
		})
	}
}

// System calls of native programs give the same answers: every change in the folder is
// EROFS.
func TestPermissionFSReadOnlyCalls(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Permissions: fsRules(t, "allow", `{"mode":"deny","operations":`+changes+`,"paths":["/workspace/t/open_create/**",
		"/workspace/t/mkdirs/**","/workspace/t/symlinks/**","/workspace/t/mknod_file/**","/workspace/t/mknod_fifo/**","/workspace/t/binds/**","/workspace/t/creat_new/**",
		"/workspace/t/tmpfile_open/**","/workspace/t/lists/**"]}`)})
	put(t, rt, "/workspace/bin/calls", static(t, "calls"))
	names := strings.Fields("open_create mkdirs symlinks mknod_file mknod_fifo binds creat_new tmpfile_open lists")
	got := strings.Fields(harness.Output(t, rt, runtime.RunOptions{}, "/workspace/bin/calls", append([]string{table}, names...)...))
	for i, name := range names {
		want := unix.EROFS
		switch {
		case name == "lists":
			want = 0
		case name == "tmpfile_open" && harness.InGVisor():
			want = unix.EOPNOTSUPP // everywhere
		}
		if n, err := strconv.Atoi(got[i]); err != nil || syscall.Errno(n) != want {
			t.Errorf("%s: %q, want %q", name, syscall.Errno(n), want)
		}
	}
}

// From a place without execute permission nothing can be executed, by any name. Everything
// else works there. A copy elsewhere is another file.
func TestPermissionFSNoExec(t *testing.T) {
	const try = `import fs from 'node:fs'; import { spawnSync } from 'node:child_process'; import { createRequire } from 'node:module';
		const at = process.argv[2], codes = {};
		const go = (program, ...args) => { const { error, status, stderr } = spawnSync(program, args); if (error) throw error; if (status) throw { code: 'status ' + status } };
		const t = (name, f) => { try { f(); codes[name] = '' } catch (e) { codes[name] = e.code } };
		fs.rmSync('/workspace/l', { force: true });
		fs.symlinkSync(at + '/calls', '/workspace/l');
		fs.writeFileSync(at + '/script', '#!/bin/sh\ntrue\n', { mode: 0o755 });
		t('direct', () => go(at + '/calls'));
		t('by a link', () => go('/workspace/l'));
		t('by /proc/self/root', () => go('/proc/self/root' + at + '/calls'));
		t('by PATH', () => go('env', 'PATH=' + at, '/usr/bin/env', 'calls'));
		t('by a shell', () => go('sh', '-c', at + '/calls'));
		t('a script', () => go(at + '/script'));
		t('an addon', () => createRequire('/')(at + '/calls.node'));
		t('a hard link', () => { fs.rmSync('/workspace/h', { force: true }); fs.linkSync(at + '/calls', '/workspace/h'); go('/workspace/h') });
		t('moved', () => { fs.copyFileSync(at + '/calls', at + '/c'); fs.renameSync(at + '/c', '/workspace/c'); go('/workspace/c') });
		t('copied', () => { fs.copyFileSync(at + '/calls', '/workspace/d'); go('/workspace/d') });
		t('interpreted', () => go('sh', at + '/script'));
		__return(codes)`
	want := map[string]string{"copied": "", "interpreted": ""}
	names := strings.Split("direct,by a link,by /proc/self/root,by PATH,by a shell,a script,an addon,a hard link,moved", ",")
	for _, name := range names {
		want[name] = "EACCES"
	}
	want["by PATH"], want["by a shell"], want["an addon"] = "status 126", "status 126", "ERR_DLOPEN_FAILED"
	want["a hard link"], want["moved"] = "EXDEV", "EXDEV"
	for _, at := range []string{"/tmp", "/workspace/data", "/workspace/a/b/data", "/dev/shm"} {
		free := harness.Create(t, runtime.Options{})
		rt := harness.Create(t, runtime.Options{Permissions: fsRules(t, "allow", `{"mode":"deny","operations":["execute"],"paths":["`+at+`/**"]}`)})
		for _, rt := range []*runtime.NodeRuntime{free, rt} {
			put(t, rt, at+"/calls", static(t, "calls"))
			put(t, rt, at+"/calls.node", addon(t, "calls"))
		}
		o := runtime.RunOptions{Args: []string{at}}
		for name, code := range value[map[string]string](t, free, try, o) {
			if code != "" && at != "/dev/shm" { // it is always noexec
				t.Errorf("%s, where it is allowed, %s: %s: this test proves nothing", at, name, code)
			}
		}
		if diff := cmp.Diff(want, value[map[string]string](t, rt, try, o)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", at, diff)
		}
	}
}

// In a denied folder, an allowed folder can be used, and nothing else.
func TestPermissionFSAllowedInDenied(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Permissions: fsRules(t, "allow", `{"mode":"deny","paths":["/workspace/a/**","/etc/**"]},
		{"mode":"allow","paths":["/workspace/a/b/open/**"]},{"mode":"allow","operations":["read"],"paths":["/etc/passwd"]}`)})
	got := value[map[string]string](t, rt, `import fs from 'node:fs';
		const codes = {}, t = (name, f) => { try { f(); codes[name] = '' } catch (e) { codes[name] = e.code } };
		t('write in it', () => fs.writeFileSync('/workspace/a/b/open/f', 'x'));
		t('read in it', () => fs.readFileSync('/workspace/a/b/open/f'));
		t('move in it', () => fs.renameSync('/workspace/a/b/open/f', '/workspace/a/b/open/g'));
		t('link out and read', () => { fs.symlinkSync('../..', '/workspace/a/b/open/up'); fs.readdirSync('/workspace/a/b/open/up') });
		t('read the file', () => fs.readFileSync('/etc/passwd'));
		t('list around it', () => fs.readdirSync('/workspace/a/b'));
		t('list above', () => fs.readdirSync('/workspace/a'));
		t('write beside it', () => fs.writeFileSync('/workspace/a/b/f', ''));
		t('make above', () => fs.mkdirSync('/workspace/a/c'));
		t('dots', () => fs.writeFileSync('/workspace/a/b/open/../f', ''));
		t('move out', () => fs.renameSync('/workspace/a/b/open/g', '/workspace/g'));
		t('move it', () => fs.renameSync('/workspace/a/b/open', '/workspace/open'));
		t('move above', () => fs.renameSync('/workspace/a', '/workspace/aa'));
		t('read beside the file', () => fs.readFileSync('/etc/group'));
		t('list its folder', () => fs.readdirSync('/etc'));
		t('write the file', () => fs.appendFileSync('/etc/passwd', ''));
		__return(codes)`, runtime.RunOptions{})
	want := map[string]string{"write in it": "", "read in it": "", "move in it": "", "read the file": "", "move out": "EXDEV", "move it": "EXDEV", "move above": "EBUSY", "read beside the file": "ENOENT"}
	for _, name := range strings.Split("link out and read,list around it,list above,write beside it,make above,dots,write the file,list its folder", ",") {
		want[name] = "EACCES"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
