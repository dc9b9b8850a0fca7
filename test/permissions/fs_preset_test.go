package permissions

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// The workspace preset lets a program write below its working directory and nowhere else.
func TestPermissionWorkspace(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, policy.Workspace("/workspace"))
	type codes struct{ Inside, Outside map[string]string }
	for _, cwd := range []string{"/workspace", "/home/node", "/workspace/deep/er", "/srv/app", "/home/node/app"} {
		rt := harness.Create(t, runtime.Options{Cwd: cwd, Permissions: policy.Workspace(cwd)})
		free := harness.Create(t, runtime.Options{Cwd: cwd})
		o := runtime.RunOptions{Args: []string{cwd}}
		all := value[codes](t, free, source(t, "workspace.mjs"), o)
		for name, code := range all.Outside {
			if code != "" && !strings.HasSuffix(name, " /opt") && !strings.HasSuffix(name, " /") { // these belong to the image
				t.Errorf("%s, where it is allowed, %s: %s: this test proves nothing", cwd, name, code)
			}
		}
		got := value[codes](t, rt, source(t, "workspace.mjs"), o)
		for name, code := range got.Inside {
			if code != "" {
				t.Errorf("%s, %s: %s", cwd, name, code)
			}
		}
		for name, code := range got.Outside {
			want := []string{"EACCES"}
			switch way, _, _ := strings.Cut(name, " "); way {
			case "chmod":
				want = []string{"EPERM"}
			case "shell":
				want = []string{"2"} // dash, whose redirection fails
			case "move":
				want = []string{"EACCES", "EXDEV"}
			}
			if !slices.Contains(want, code) {
				t.Errorf("%s, %s: %q, want one of %q", cwd, name, code, want)
			}
		}
	}
}

// A granted folder exists from the start and belongs to the guest, even if the guest may
// not create it.
func TestPermissionFSGrantedFolder(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, policy.Workspace("/workspace/deep/er"))
	const use = `import fs from 'node:fs'; const [, , dir] = process.argv;
		fs.writeFileSync(dir + '/f', 'x'); fs.mkdirSync(dir + '/d'); fs.renameSync(dir + '/f', dir + '/d/f');
		let code = ''; try { fs.writeFileSync('/workspace/beside', '') } catch (e) { code = e.code }
		__return([fs.readFileSync(dir + '/d/f', 'utf8'), code])`
	for name, tc := range map[string]struct {
		dir    string
		policy policy.Permissions
	}{
		"alone":                   {"/workspace/out", fsRules(t, "deny", `{"mode":"allow","paths":["/workspace/out/**"]}`)},
		"deep":                    {"/workspace/a/b/out", fsRules(t, "deny", `{"mode":"allow","paths":["/workspace/a/b/out/**"]}`)},
		"in the readable folder":  {"/workspace/out", fsRules(t, "deny", `{"mode":"allow","operations":["read","readdir"],"paths":["/**"]},{"mode":"allow","paths":["/workspace/out/**"]}`)},
		"temporary":               {"/tmp/a/out", fsRules(t, "deny", `{"mode":"allow","operations":["read"],"paths":["/tmp/**"]},{"mode":"allow","paths":["/tmp/a/out/**"]}`)},
		"in the read-only folder": {"/var/tmp/out", fsRules(t, "deny", `{"mode":"allow","paths":["/var/tmp/out/**"]}`)},
		"of the workspace":        {"/workspace/deep/er", policy.Workspace("/workspace/deep/er")},
	} {
		rt := harness.Create(t, runtime.Options{Permissions: tc.policy})
		if got := value[[2]string](t, rt, use, runtime.RunOptions{Args: []string{tc.dir}}); got != [2]string{"x", "EACCES"} {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Create rejects rules that cannot be enforced, by their place.
func TestPermissionFSRefused(t *testing.T) {
	deny := func(rest string) string { return `{"fs":{"default":"allow","rules":[{"mode":"deny",` + rest + `}]}}` }
	allow := func(rest string) string { return `{"fs":{"rules":[{"mode":"allow",` + rest + `}]}}` }
	for _, tc := range []struct{ text, place, says, nearest string }{
		{deny(`"paths":["/workspace/*.key"]`), "fs.rules[0].paths[0]", "not patterns of names", "/workspace/**"},
		{deny(`"paths":["/workspace/**","/workspace/**/.git"]`), "fs.rules[0].paths[1]", "not patterns of names", "/workspace/**"},
		{deny(`"operations":["read"],"paths":["/workspace/x/**"]`), "fs.rules[0].paths[0]", "revoke read", "deny everything"},
		{deny(`"operations":["write"],"paths":["/tmp/x/**"]`), "fs.rules[0].paths[0]", "revoke write", "all of write"},
		{deny(`"operations":["stat"],"paths":["/etc/**"]`), "fs.rules[0].paths[0]", "lacks a hook for stat", "everything"},
		{deny(`"operations":["chmod"],"paths":["/workspace/**"]`), "fs.rules[0].paths[0]", "cannot restrict chmod", "nowhere"},
		{deny(`"operations":["rename"],"paths":["/workspace/**"]`), "fs.rules[0].paths[0]", "distinguish a rename", "everywhere"},
		{deny(`"paths":["/usr/local/bin/node"]`), "fs.rules[0].paths[0]", "Node itself", "leave it out"},
		{deny(`"paths":["/proc/**"]`), "fs.rules[0].paths[0]", "scope process", "leave it out"},
		{deny(`"paths":["/usr/lib/**"]`), "fs.rules[0].paths[0]", "libraries", "leave it out"},
		{deny(`"paths":["/workspace"]`), "fs.rules[0].paths[0]", "it is a folder", "/workspace/**"},
		{deny(`"paths":["/etc"]`), "fs.rules[0].paths[0]", "it is a folder", "/etc/**"},
		{deny(`"paths":["/opt"]`), "fs.rules[0].paths[0]", "it is a folder", "/opt/**"},
		{deny(`"paths":["/etc/passwd/**"]`), "fs.rules[0].paths[0]", "is not a folder", "/etc/passwd"},
		{deny(`"paths":["/etc/group","/bin/**"]`), "fs.rules[0].paths[1]", "symbolic link", "/usr/bin/**"},
		{deny(`"paths":["/bin"]`), "fs.rules[0].paths[0]", "symbolic link", "/usr/bin"},
		{deny(`"operations":["execute"],"paths":["/sbin/**"]`), "fs.rules[0].paths[0]", "symbolic link", "/usr/sbin/**"},
		{deny(`"paths":["/usr/bin/sh"]`), "fs.rules[0].paths[0]", "symbolic link", "/usr/bin/dash"},
		{allow(`"operations":["read"],"paths":["/lib64/**"]`), "fs.rules[0].paths[0]", "symbolic link", "/usr/lib64/**"},
		{allow(`"operations":["readdir"],"paths":["/etc/passwd"]`), "fs.rules[0].paths[0]", "checked on the folder", "/etc/passwd/**"},
		{`{"childProcess":{"rules":[{"mode":"allow","patterns":["/usr/local/bin/node","/bin/busybox"]}]}}`, "childProcess.rules[0].patterns[1]", "symbolic link", "/usr/bin/busybox"},
	} {
		if tc.says == "symbolic link" && strings.Contains(tc.text, "allow") && !strings.Contains(tc.text, "deny") && !harness.Needs(t, runtime.FeatureLandlock) {
			continue
		}
		err := harness.CreateError(t, harness.Options(runtime.Options{Permissions: permissions(t, tc.text)}))
		bad, ok := errors.AsType[*policy.RuleError](err)
		if !ok || bad.Place != tc.place || !strings.Contains(bad.Why, tc.says) || !strings.Contains(bad.Nearest, tc.nearest) ||
			!strings.HasPrefix(err.Error(), "gaol: create: option Permissions: permissions: "+tc.place) {
			t.Errorf("%s:\n got %v\nwant %s: %s; %s", tc.text, err, tc.place, tc.says, tc.nearest)
		}
	}
}

// A run may have fewer permissions than its runtime, but not more. Runs before and after it
// are not affected.
func TestPermissionFSNarrowed(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock)
	rt := harness.Create(t, runtime.Options{Permissions: fsRules(t, "allow", `{"mode":"deny","paths":["/workspace/secret/**"]},{"mode":"deny","operations":`+changes+`,"paths":["/workspace/lib/**"]}`)})
	put(t, rt, "/workspace/in/f", []byte("in"))
	put(t, rt, "/workspace/out/f", []byte("out"))
	const try = `import fs from 'node:fs';
		const codes = {}, t = (name, f) => { try { f(); codes[name] = '' } catch (e) { codes[name] = e.code } };
		for (const dir of ['in', 'out', 'secret', 'lib']) {
			t('read ' + dir, () => fs.readFileSync('/workspace/' + dir + '/f'));
			t('write ' + dir, () => fs.writeFileSync('/workspace/' + dir + '/g', ''));
		}
		__return(codes)`
	wide := map[string]string{"read in": "", "write in": "", "read out": "", "write out": "", "read secret": "EACCES", "write secret": "EACCES", "read lib": "ENOENT", "write lib": "EROFS"}
	narrow := fsRules(t, "deny", `{"mode":"allow","operations":["read"],"paths":["/workspace/in/**"]},{"mode":"allow","operations":["read","write","truncate"],"paths":["/workspace/out/**"]}`)
	want := map[string]string{"read in": "", "write in": "EACCES", "read out": "", "write out": "", "read secret": "EACCES", "write secret": "EACCES", "read lib": "ENOENT", "write lib": "EROFS"}
	for range 2 {
		if diff := cmp.Diff(wide, value[map[string]string](t, rt, try, runtime.RunOptions{})); diff != "" {
			t.Errorf("the runtime's (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(want, value[map[string]string](t, rt, try, runtime.RunOptions{Permissions: narrow})); diff != "" {
			t.Errorf("narrowed (-want +got)\n%s", diff)
		}
	}
	for text, says := range map[string]string{
		`"allow"`: "fs: it allows",
		`{"default":"allow","rules":[{"mode":"deny","operations":` + changes + `,"paths":["/workspace/lib/**"]}]}`:     "which the runtime denies",
		`{"rules":[{"mode":"allow","paths":["/workspace/**"]}]}`:                                                       "fs.rules[0]: it allows",
		`{"rules":[{"mode":"allow","operations":["read"],"paths":["/bin/**"]}]}`:                                       "symbolic link",
		`{"rules":[{"mode":"allow","operations":["read"],"paths":["/workspace/*.js"]}]}`:                               "not patterns of names",
		`{"default":"allow","rules":[{"mode":"deny","paths":["/workspace/secret/**","/workspace/lib/**","/etc/**"]}]}`: "shares the runtime's mounts",
	} {
		_, err := rt.Run(t.Context(), "", runtime.RunOptions{Permissions: permissions(t, `{"fs":`+text+`}`)})
		if bad, ok := errors.AsType[*policy.RuleError](err); !ok || !strings.Contains(bad.Error(), says) {
			t.Errorf("%s: %v, want %s", text, err, says)
		}
	}
}

// A link that one run leaves where the next one is granted a folder gives that run no
// access to the target.
func TestPermissionFSReplacedBetweenRuns(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, publicOnly(t))
	rt := withPrivate(t)
	o := runtime.RunOptions{Permissions: publicOnly(t)}
	if got := value[string](t, rt, `import fs from 'node:fs'; __return(fs.readFileSync('/workspace/public/f', 'utf8'))`, o); got != "open" {
		t.Fatalf("%q: this test proves nothing", got)
	}
	harness.Output(t, rt, runtime.RunOptions{}, "sh", "-c", "mv public was && ln -s private public")
	if res, err := rt.Run(t.Context(), `import fs from 'node:fs'; __return(fs.readFileSync('/workspace/public/f', 'utf8'))`, o); err == nil || !strings.Contains(err.Error(), "/workspace/public: a symbolic link is on the way") {
		t.Errorf("with a link in its place: %+v, %v", res, err)
	}
	harness.Output(t, rt, runtime.RunOptions{}, "sh", "-c", "rm public && mv private public && mkdir private && mv was/f private")
	got := value[[]string](t, rt, `import fs from 'node:fs'; __return(['public', 'private'].map(d => { try { return fs.readFileSync('/workspace/' + d + '/f', 'utf8') } catch (e) { return e.code } }))`, o)
	if diff := cmp.Diff([]string{"the secret", "EACCES"}, got); diff != "" { // a grant applies to what exists when a run starts
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A folder that everyone may write to stays so if permissions name a folder in it.
func TestPermissionFSGrantedTemporary(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock)
	rt := harness.Create(t, runtime.Options{Permissions: fsRules(t, "deny", `{"mode":"allow","operations":["read","readdir","write","rm","rename","truncate","chmod","execute"],"paths":["/**"]},
		{"mode":"allow","paths":["/tmp/out/**"]}`)})
	got := value[[]string](t, rt, `import fs from 'node:fs'; fs.writeFileSync('/tmp/f', ''); fs.mkdirSync('/tmp/out/d');
		let code = ''; try { fs.mkdirSync('/tmp/d') } catch (e) { code = e.code }
		__return([fs.statSync('/tmp').mode.toString(8), code])`, runtime.RunOptions{})
	if diff := cmp.Diff([]string{"41777", "EACCES"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A folder with more permissions than its surroundings cannot be moved elsewhere, nor can
// another folder replace it.
func TestPermissionFSGrantedFolderStays(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock)
	const around = `"read","write","readdir","create_dir","rm","rename"`
	const try = `import fs from 'node:fs';
		const codes = {}, t = (name, f) => { try { f(); codes[name] = '' } catch (e) { codes[name] = e.code } };
		t('make', () => fs.mkdirSync('/workspace/a/other', { recursive: true }));
		t('truncate', () => { fs.writeFileSync('/workspace/a/bin/f', 'x'); fs.truncateSync('/workspace/a/bin/f') });
		t('move another', () => fs.renameSync('/workspace/a/other', '/workspace/a/moved'));
		t('move it', () => { fs.renameSync('/workspace/a/bin', '/workspace/a/x'); fs.renameSync('/workspace/a/x', '/workspace/a/bin') });
		t('move what leads to it', () => { fs.renameSync('/workspace/a', '/workspace/b'); fs.renameSync('/workspace/b', '/workspace/a') });
		t('move over it', () => { fs.mkdirSync('/workspace/a/y'); fs.rmSync('/workspace/a/bin/f'); fs.renameSync('/workspace/a/y', '/workspace/a/bin') });
		__return(codes)`
	for name, tc := range map[string]struct {
		rules string
		want  map[string]string
	}{
		"a grant":           {`{"mode":"allow","operations":[` + around + `],"paths":["/workspace/**"]},{"mode":"allow","operations":[` + around + `,"truncate"],"paths":["/workspace/a/bin/**"]}`, map[string]string{"move it": "EBUSY", "move what leads to it": "EBUSY", "move over it": "EBUSY"}},
		"the same all over": {`{"mode":"allow","operations":[` + around + `,"truncate"],"paths":["/workspace/**"]}`, map[string]string{}},
	} {
		rt := harness.Create(t, runtime.Options{Permissions: fsRules(t, "deny", tc.rules)})
		if name != "a grant" {
			harness.Run(t, rt, `import fs from 'node:fs'; fs.mkdirSync('/workspace/a/bin', { recursive: true })`, runtime.RunOptions{})
		}
		want := map[string]string{"make": "", "truncate": "", "move another": "", "move it": "", "move what leads to it": "", "move over it": ""}
		maps.Copy(want, tc.want)
		if diff := cmp.Diff(want, value[map[string]string](t, rt, try, runtime.RunOptions{})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
