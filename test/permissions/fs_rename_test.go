package permissions

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
	"gaol/test/harness"
)

// No rename or link moves a file to where it would have more permissions, or out of a place
// without any. All others work.
func TestPermissionFSMoves(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock)
	rt := harness.Create(t, runtime.Options{})
	const dirs = `const dirs = ['all', 'noexec', 'look', 'none'], ways = ['link', 'rename', 'rename a folder'];`
	const make = `import fs from 'node:fs';` + dirs + `
		for (const from of dirs) for (const to of dirs) for (const way of ways) {
			const at = '/workspace/' + from;
			fs.mkdirSync(at, { recursive: true });
			way === 'rename a folder' ? fs.mkdirSync(at + '/' + to + way) : fs.writeFileSync(at + '/' + to + way, '');
		}`
	// Every move from one folder to another, and its error code.
	const try = `import fs from 'node:fs';` + dirs + `
		const codes = {};
		for (const from of dirs) for (const to of dirs) for (const way of ways) try {
			(way === 'link' ? fs.linkSync : fs.renameSync)('/workspace/' + from + '/' + to + way, '/workspace/' + to + '/from ' + from + way);
			codes[from + ' to ' + to + ', ' + way] = '';
		} catch (e) {
			codes[from + ' to ' + to + ', ' + way] = e.code;
		}
		__return(codes)`
	const ops = `"read","write","readdir","create_dir","rm","rename","symlink","truncate"`
	narrow := fsRules(t, "deny", `{"mode":"allow","operations":[`+ops+`,"execute"],"paths":["/workspace/all/**"]},
		{"mode":"allow","operations":[`+ops+`],"paths":["/workspace/noexec/**"]},
		{"mode":"allow","operations":["read","readdir"],"paths":["/workspace/look/**"]}`)
	if res := harness.Run(t, rt, make, runtime.RunOptions{}); res.ExitCode != 0 {
		t.Fatalf("%s", res.Stderr)
	}
	free := value[map[string]string](t, rt, try, runtime.RunOptions{})
	for name, code := range free {
		if code != "" {
			t.Errorf("where all is allowed, %s: %s: this test proves nothing", name, code)
		}
	}
	harness.Output(t, rt, runtime.RunOptions{}, "sh", "-c", "rm -rf /workspace/*")
	harness.Run(t, rt, make, runtime.RunOptions{})
	got := value[map[string]string](t, rt, try, runtime.RunOptions{Permissions: narrow})
	want := map[string]string{}
	for name := range free {
		way, _, _ := strings.Cut(name, ",")
		switch {
		case slices.Contains([]string{"all to all", "noexec to noexec", "all to noexec"}, way):
			want[name] = ""
		case way == "noexec to all", strings.HasSuffix(name, "link") && (strings.HasSuffix(way, "to all") || strings.HasSuffix(way, "to noexec")):
			want[name] = "EXDEV" // the file would have more permissions there
		default:
			want[name] = "EACCES"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
