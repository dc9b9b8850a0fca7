package escape

import (
	"os"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// The system's files belong to a root user that the guest can neither become nor act as.
func TestEscapeToRoot(t *testing.T) {
	code, err := os.ReadFile("testdata/root.mjs")
	if err != nil {
		t.Fatal(err)
	}
	rt := harness.Create(t, runtime.Options{})
	var got struct {
		Done  []string
		Tried struct{ Files, Folders, Own int }
		IDs   []string
	}
	if err := harness.Run(t, rt, string(code), runtime.RunOptions{}).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if len(got.Done) > 0 {
		t.Errorf("the guest managed to %s", strings.Join(got.Done, ", "))
	}
	if got.Tried.Files < 2000 || got.Tried.Folders < 100 || got.Tried.Own != 2 {
		t.Errorf("it tried %+v", got.Tried)
	}
	want := []string{"Uid: 1000 1000 1000 1000", "Gid: 1000 1000 1000 1000", "Groups:",
		"CapInh: 0000000000000000", "CapPrm: 0000000000000000", "CapEff: 0000000000000000", "CapBnd: 0000000000000000", "CapAmb: 0000000000000000"}
	for i, line := range got.IDs {
		if line = strings.Join(strings.Fields(line), " "); i >= len(want) || line != want[i] {
			t.Errorf("status has %q", line)
		}
	}
}

// Folders belong to root, because programs such as @swc/core refuse to load from below a
// folder of an unknown user.
func TestRootOwnsFolders(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	res := harness.Run(t, rt, `
		import { execFileSync } from 'node:child_process';
		__return(execFileSync('ls', ['-ldn', '/', '/tmp', '/home', '/usr', '/etc', '/bin/sh', '/etc/passwd', '/home/node', '/workspace'], { encoding: 'utf8' })
			.trim().split('\n').map(line => line.split(/ +/)).map(f => [f[0], f[2], f[3], f[8]].join(' ')))`, runtime.RunOptions{})
	var got []string
	if err := res.Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := `drwxr-xr-x 0 0 /
lrwxrwxrwx 0 0 /bin/sh
drwxr-xr-x 0 0 /etc
-rw-r--r-- 0 0 /etc/passwd
drwxr-xr-x 0 0 /home
drwxr-xr-x 1000 1000 /home/node
drwxrwxrwt 0 0 /tmp
drwxr-xr-x 0 0 /usr
drwxr-xr-x 1000 1000 /workspace`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("owners are\n%s\nwant\n%s", text, want)
	}
}
