package host

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// A link that a guest left in a snapshot is followed within the guest's tree, not on the
// host.
func TestSnapshotWithLinks(t *testing.T) {
	host := harness.HostTree(t, map[string]string{"node_modules/p/index.js": "the host's", "own/f": "the host's"})
	first := harness.Create(t, runtime.Options{Cwd: "/srv"})
	if res := harness.Run(t, first, fmt.Sprintf(`import fs from 'node:fs';
		fs.symlinkSync(%[1]q, 'out'); fs.symlinkSync('/srv/real', 'in'); fs.mkdirSync('real/node_modules/p', { recursive: true });
		fs.writeFileSync('real/node_modules/p/index.js', "the guest's")`, host), runtime.RunOptions{}); res.ExitCode != 0 {
		t.Fatalf("%s", res.Stderr)
	}
	s := harness.TakeSnapshot(t, first, runtime.SnapshotOptions{})
	if rt, err := runtime.Create(t.Context(), harness.Options(runtime.Options{Cwd: "/srv/out", NodeModules: "snapshot:" + s.ID})); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("packages beyond a link: %v, %v", rt, err)
	}
	in := harness.Create(t, runtime.Options{Cwd: "/srv/in", NodeModules: "snapshot:" + s.ID})
	if res := harness.Run(t, in, `import fs from 'node:fs'; console.log(fs.readFileSync('node_modules/p/index.js', 'utf8'))`, runtime.RunOptions{}); string(res.Stdout) != "the guest's\n" {
		t.Errorf("packages by a link: %q %q", res.Stdout, res.Stderr)
	}
	out := harness.Create(t, runtime.Options{Cwd: "/srv/out/own", Snapshot: s.ID})
	if res := harness.Run(t, out, `import fs from 'node:fs'; console.log(fs.readdirSync('.').length)`, runtime.RunOptions{}); string(res.Stdout) != "0\n" {
		t.Errorf("a folder beyond a link: %q %q", res.Stdout, res.Stderr)
	}
}
