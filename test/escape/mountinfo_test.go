package escape

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// mounted is a line of /proc/self/mountinfo, see proc_pid_mountinfo(5).
type mounted struct{ root, at, kind, source, options string }

// programs is the guest's folder of runs' programs. Its name is that of a folder of the host, and nothing
// else of it is.
const programs = "/run/gaol"

func parseMountinfo(t *testing.T, text string) map[string]mounted {
	t.Helper()
	all := map[string]mounted{}
	for line := range strings.Lines(text) {
		mount, device, found := strings.Cut(strings.TrimSpace(line), " - ")
		f, d := strings.Fields(mount), strings.Fields(device)
		if !found || len(f) < 6 || len(d) != 3 {
			t.Fatalf("line %q", line)
		}
		all[f[4]] = mounted{f[3], f[4], d[0], d[1], d[2]}
	}
	return all
}

// inFileSystem returns the mount that contains a host path, and the path in the mount's
// file system.
func inFileSystem(t *testing.T, path string) (mounted, string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	all := parseMountinfo(t, string(text))
	for at := path; ; at = filepath.Dir(at) {
		if m, found := all[at]; found {
			rest, err := filepath.Rel(at, path)
			if err != nil {
				t.Fatal(err)
			}
			return m, filepath.Join(m.root, rest)
		}
	}
}

// Of the host's paths, /proc/self/mountinfo shows a guest only those of the sources of ro
// and rw mounts, relative to their file system: Linux does not hide these. No other line or
// field has a path of the host. gVisor shows none.
func TestMountinfo(t *testing.T) {
	dir := t.TempDir()
	sources := map[string]string{"/ro": "ro-source", "/rw": "rw-source", "/cow": "cow-source", "/file": "file-source", "/workspace/node_modules": "packages"}
	for at, name := range sources {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if at == "/file" {
			sources[at] += "/secret-name"
			if err := os.WriteFile(filepath.Join(dir, sources[at]), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	in := func(at string) string { return filepath.Join(dir, sources[at]) }
	rt := harness.Create(t, runtime.Options{
		Mounts: []runtime.Mount{
			{Source: in("/ro"), Target: "/ro"}, {Source: in("/file"), Target: "/file"},
			{Source: in("/rw"), Target: "/rw", Access: runtime.ReadWrite}, {Source: in("/cow"), Target: "/cow", Access: runtime.CopyOnWrite},
		},
		NodeModules: in("/workspace/node_modules"),
		Permissions: policy.Permissions{FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{
			{Mode: policy.Deny, Paths: []string{"/usr/share/**"}}, // a mount hides it
		}}},
	})
	res := harness.Run(t, rt, `const fs = require('fs');
		__return(['mountinfo', 'mounts', 'mountstats'].map(f => { try { return fs.readFileSync('/proc/self/' + f, 'utf8') } catch (e) { return e.code } }))`, runtime.RunOptions{Name: "x.cjs"})
	var texts [3]string
	if err := json.Unmarshal(res.Value, &texts); err != nil {
		t.Fatalf("%v, %+v", err, res)
	}
	all := parseMountinfo(t, texts[0])
	overlays := []string{"/cow", "/workspace/node_modules"}
	for at := range sources {
		want := mounted{"/", at, "overlay", "overlay", all[at].options}
		isOverlay := slices.Contains(overlays, at)
		switch {
		case harness.InGVisor():
			want.source = "none"
			if !isOverlay {
				want.kind = "9p"
			}
		case !isOverlay:
			host, path := inFileSystem(t, in(at))
			want = mounted{path, at, host.kind, host.source, host.options}
		}
		if got := all[at]; got != want {
			t.Errorf("%s: the guest sees %+v, want %+v", at, got, want)
		}
	}
	own := []string{"tmpfs", "overlay", "devpts", "proc"}
	for at, m := range all {
		if _, isSource := sources[at]; isSource && !slices.Contains(overlays, at) {
			continue
		}
		// The rest are the image's own mounts and relative paths of the staging folder.
		m.options = strings.Replace(m.options, ",aname=/,", ",", 1) // the whole mount, in gVisor
		if slices.Index(own, m.kind) < 0 || strings.Contains(m.source, "/") || strings.Contains(m.options, "=/") || strings.Contains(m.options, ":/") {
			t.Errorf("of another file system: %+v", m)
		}
	}
	for i, text := range texts {
		for line := range strings.Lines(text) {
			line = strings.Replace(line, " "+programs+" ", " ", 1)
			for _, hidden := range []string{filepath.Base(in("/cow")), sources["/workspace/node_modules"] + " ", "images/", "rootfs", "jails", "/run/gaol", "/var/lib", filepath.Base(harness.Parent)} {
				if strings.Contains(line, hidden) {
					t.Errorf("%q is in a line: %s", hidden, line)
				}
			}
			if (i > 0 || harness.InGVisor()) && strings.Contains(line, "-source") {
				t.Errorf("the path of a source is in a line: %s", line)
			}
		}
	}
}

// The folder of programs is a bounded file system that no guest can write to, list or execute from,
// whatever its permissions allow in the folder around it.
func TestProgramsMount(t *testing.T) {
	for name, permissions := range map[string]policy.Permissions{
		"default": {},
		"open":    {FS: policy.Scope{Default: policy.Allow}},
		"denied":  {FS: policy.Scope{Default: policy.Deny}},
		"execute elsewhere": {FS: policy.Scope{Default: policy.Allow, Rules: []policy.Rule{
			{Mode: policy.Deny, Operations: []policy.Operation{"execute"}, Paths: []string{"/tmp/**"}},
		}}},
	} {
		if (name == "denied" || name == "execute elsewhere") && !harness.Needs(t, runtime.FeatureLandlock) {
			continue
		}
		rt := harness.CreatePermitted(t, permissions)
		res := harness.Run(t, rt, `
			const fs = require('fs'), path = require('path');
			const attempt = (call) => { try { call(); return 'done'; } catch (err) { return err.code; } };
			const file = process.argv[1], top = path.dirname(path.dirname(file)), info = fs.statSync(top);
			const line = fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\n').find((line) => line.split(' ')[4] === top);
			__return([top, info.uid, (info.mode & 0o7777).toString(8), line.replace(/^\S+ \S+ \S+ /, ''), attempt(() => fs.readdirSync(top)),
				attempt(() => fs.writeFileSync(top + '/x', '')), attempt(() => fs.writeFileSync(file, '')), attempt(() => fs.chmodSync(file, 0o777))].join('|'))`, runtime.RunOptions{Name: "x.cjs"})
		var got string
		if err := res.Decode(&got); err != nil {
			t.Fatalf("%s: %v, %s", name, err, res.Stderr)
		}
		want := programs + "|0|711|/ " + programs + " ro,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,size=1048576k,nr_inodes=32768,mode=711|EACCES|EROFS|EROFS|"
		if harness.InGVisor() { // it checks the mode first
			want = programs + "|0|711|/ " + programs + " ro,nosuid,nodev,noexec - tmpfs none ro,size=1048576k,nr_inodes=32768,mode=0711|EACCES|EACCES|EACCES|"
		}
		if got != want+"EROFS" && got != want+"EPERM" { // the latter from a filter
			t.Errorf("%s: got  %s\nwant %s", name, got, want)
		}
	}
}
