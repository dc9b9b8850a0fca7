package host

import (
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// Folders that are made for Options.Files belong to the guest, folders of the image do not.
func TestFoldersAboveFiles(t *testing.T) {
	const code = `
		import fs from 'node:fs'; const t = (f) => { try { fs.writeFileSync(f, ''); fs.chmodSync(f.replace(/.[^/]+$/, ''), 0o755); return 'ok' } catch (e) { return e.code } };
		console.log(t('/app/src/new'), t('/app/new'), t('/etc/new'), t('/opt/new'))`
	files := map[string][]byte{"/app/src/main.js": nil, "/etc/motd": nil}
	noChmod := policy.Permissions{FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{{
		Mode: policy.Deny, Paths: []string{"/app/**"},
		Operations: []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "truncate", "chmod"},
	}}}}
	for want, p := range map[string]policy.Permissions{"ok ok EACCES EACCES\n": {}, "EROFS EROFS EACCES EACCES\n": noChmod} {
		res := harness.Run(t, harness.Create(t, runtime.Options{Files: files, Permissions: p}), code, runtime.RunOptions{})
		if string(res.Stdout) != want {
			t.Errorf("got %q %q, want %q", res.Stdout, res.Stderr, want)
		}
	}
}
