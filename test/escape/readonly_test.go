package escape

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// The owner of files in a place that permissions make read-only changes neither their content nor their metadata: each call returns
// EROFS, by path and by descriptor. gVisor's kernel allowed most of them.
func TestEscapeReadOnly(t *testing.T) {
	rt := harness.Create(t, runtime.Options{
		Permissions: policy.Permissions{FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{{
			Mode: policy.Deny, Paths: []string{"/workspace/lib/**"},
			Operations: []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"},
		}}}}.Over(policy.Default()),
		Files: map[string][]byte{"/workspace/lib/f": []byte("content"), "/workspace/free": nil},
	})
	const look = `const s = require("fs").statSync("/workspace/lib/f"); __return([s.mode, s.mtimeMs, s.size].join())`
	before := harness.Run(t, rt, look, runtime.RunOptions{}).Value
	if res := harness.Run(t, rt, `
		const fs = require("fs"), id = process.getuid(), fd = fs.openSync("lib/f"), free = fs.openSync("free"), errors = {}
		for (const [name, change] of Object.entries({
			chmod: f => fs.chmodSync(f, 0o600), chown: f => fs.chownSync(f, id, id), lchown: f => fs.lchownSync(f, id, id),
			utimes: f => fs.utimesSync(f, 1, 1), lutimes: f => fs.lutimesSync(f, 1, 1), truncate: f => fs.truncateSync(f, 0),
			fchmod: (f, fd) => fs.fchmodSync(fd, 0o600), fchown: (f, fd) => fs.fchownSync(fd, id, id), futimes: (f, fd) => fs.futimesSync(fd, 1, 1),
		})) {
			change("/workspace/free", free)
			for (const f of ["/workspace/lib/f", "/workspace/./lib/../lib/f", "/proc/self/cwd/lib/f"])
				try { change(f, fd); errors[name] = "works" } catch (e) { if (e.code !== "EROFS") errors[name] = e.code }
		}
		__return(errors)`, runtime.RunOptions{}); string(res.Value) != "{}" {
		t.Errorf("not EROFS: %s, stderr %s", res.Value, res.Stderr)
	}
	var calls []string
	for _, file := range []string{"lib/f", "/proc/self/cwd/lib/f"} {
		calls = append(calls, call(unix.SYS_TRUNCATE, "s"+file+",0"), call(unix.SYS_REMOVEXATTR, "s"+file+",suser.a"))
	}
	got := harness.Output(t, rt, runtime.RunOptions{}, harness.Install(t, rt, "call"), calls...)
	if want := strings.TrimSpace(strings.Repeat(fmt.Sprintf("%d\n", unix.EROFS), len(calls))); got != want {
		t.Errorf("%v: %q", calls, got)
	}
	if after := harness.Run(t, rt, look, runtime.RunOptions{}).Value; string(after) != string(before) {
		t.Errorf("%s, before %s", after, before)
	}
}

// Opening a folder does not follow a symbolic link if it is not to, so that removing a link leaves its target alone.
func TestEscapeLinkToFolder(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Files: map[string][]byte{"/workspace/target/f": []byte("content")}})
	res := harness.Run(t, rt, `
		const fs = require("fs"), { O_DIRECTORY, O_NOFOLLOW } = fs.constants
		const open = (path, flags) => { try { fs.closeSync(fs.openSync(path, flags)); return "opened" } catch (e) { return e.code } }
		fs.symlinkSync("target", "link"); fs.symlinkSync("target/f", "file")
		console.log(open("link", O_DIRECTORY), open("link/", O_DIRECTORY | O_NOFOLLOW), open("target", O_DIRECTORY | O_NOFOLLOW))
		console.log(open("link", O_DIRECTORY | O_NOFOLLOW), open("file", O_DIRECTORY | O_NOFOLLOW), open("target/f", O_DIRECTORY | O_NOFOLLOW), open("link", O_NOFOLLOW))
		fs.rmSync("link", { recursive: true }); fs.rmSync("file", { recursive: true })
		console.log(fs.readFileSync("target/f", "utf8"), fs.readdirSync(".").join())`, runtime.RunOptions{})
	if want := "opened opened opened\nENOTDIR ENOTDIR ENOTDIR ELOOP\ncontent target\n"; string(res.Stdout) != want {
		t.Errorf("%q, want %q; stderr %s", res.Stdout, want, res.Stderr)
	}
}
