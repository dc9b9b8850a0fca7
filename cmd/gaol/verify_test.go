package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/rootfs"

	"github.com/google/go-cmp/cmp"
)

// changeSnapshot adds a snapshot and changes its files in the store.
func changeSnapshot(t *testing.T, dir, name string, change func(root string)) {
	t.Helper()
	id := addSnapshot(t, dir, name, name)
	store, err := rootfs.OpenSnapshots(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	change(s.Root())
}

func TestVerify(t *testing.T) {
	dir := t.TempDir()
	verify := func(args ...string) outcome {
		t.Helper()
		got := new(fake).call(t, "", append([]string{"snapshot", "verify", "--store", dir}, args...)...)
		for _, line := range strings.Split(got.stdout, "\n") {
			if id, rest, found := strings.Cut(line, "  "); found && strings.HasPrefix(id, "sha256:") {
				got.stdout = strings.Replace(got.stdout, line, "ID  "+rest, 1)
			}
		}
		return got
	}
	if got := verify(); got != (outcome{}) {
		t.Errorf("an empty store: %+v", got)
	}
	addSnapshot(t, dir, "same", "good", "well")
	if got, want := verify(), (outcome{stdout: "ID  good  well  unchanged\n"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	checkFailure(t, verify("nosuch"), `snapshot "nosuch": no such snapshot`)

	changeSnapshot(t, dir, "bad", func(root string) {
		_ = os.Chmod(filepath.Join(root, "file"), 0o600)
		_ = os.WriteFile(filepath.Join(root, "file"), []byte("BAD"), 0)
		_ = os.Symlink("x", filepath.Join(root, "a\n  \x1b[2Jb"))
	})
	got := verify("well", "bad")
	want := outcome{code: 1, stdout: `ID  good  well  unchanged
ID  bad  differences: 3
  added     "/a\n  \x1b[2Jb"   Lrwxrwxrwx
  mode      /file              was -rw-r--r--, is -rw-------
  content   /file              was sha256:` + "2f05d4b689d270cafb02285f35f44866f7dc8a2d368a3f9d1124373eeab31fb1" +
		`, is sha256:` + "de6b9d5b9a7c9e99a9421d284164b52c8a53000380d39e9e52117f4c3da4caf9" + "\n"}
	if diff := cmp.Diff(want.stdout, got.stdout); diff != "" || got.code != want.code || got.stderr != "" {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}
	changeSnapshot(t, dir, "empty", func(root string) {
		_ = os.Remove(filepath.Join(root, "file"))
	})
	if got := verify("empty"); got.code != 1 || !strings.Contains(got.stdout, "  removed   /file   was -rw-r--r--\n") {
		t.Errorf("%+v", got)
	}
}

// TestVerifyMany checks that output is bounded, and that the next image is compared.
func TestVerifyMany(t *testing.T) {
	dir := t.TempDir()
	changeSnapshot(t, dir, "bad", func(root string) {
		for n := range 100 {
			_ = os.WriteFile(fmt.Sprintf("%s/new%d", root, n), nil, 0o644)
		}
	})
	changeSnapshot(t, dir, "unlisted", func(root string) {
		_ = os.Remove(filepath.Join(root, "../files"))
		_ = os.Remove(filepath.Join(root, "file"))
	})
	addSnapshot(t, dir, "same", "good")
	got := new(fake).call(t, "", "snapshot", "verify", "--store", dir)
	if strings.Count(got.stdout, "\n") != 1+20+1+1+1 || got.code != 1 || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{"  bad  differences: 100\n", "  and 80 more\n", "  unlisted  its image.json or list of files was changed", "  good  unchanged\n"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%q is not in %s", want, got.stdout)
		}
	}
}
