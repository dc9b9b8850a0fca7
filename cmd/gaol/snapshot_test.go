package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gaol/rootfs"
)

// addSnapshot adds a snapshot with one file to a store, and returns its id.
func addSnapshot(t *testing.T, dir, text string, names ...string) string {
	t.Helper()
	store, err := rootfs.OpenSnapshots(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Add(t.Context(), names, func(root string) error {
		return os.WriteFile(filepath.Join(root, "file"), []byte(text), 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.ID
}

func TestSnapshotRemove(t *testing.T) {
	dir := t.TempDir()
	gaol := func(args ...string) outcome {
		t.Helper()
		return new(fake).call(t, "", append(args, "--store", dir)...)
	}
	addSnapshot(t, dir, "same", "one2", "one3")
	if got := gaol("snapshot", "rm", "one2"); got != (outcome{stdout: "one2  freed 0.0 MB\n"}) {
		t.Errorf("%+v", got)
	}
	if got := gaol("snapshot", "ls"); !strings.Contains(got.stdout, "one3") || strings.Contains(got.stdout, "one2") {
		t.Errorf("%+v", got)
	}
	id := addSnapshot(t, dir, "same", "one2")
	if got := gaol("snapshot", "rm", "one2", "one3"); got != (outcome{stdout: "one2  freed 0.0 MB\n" + id + "  freed 0.0 MB\n"}) {
		t.Errorf("%+v", got)
	}
	checkFailure(t, gaol("snapshot", "rm", id), "no such")
	addSnapshot(t, dir, "same", "one2", "one3")
	if got := gaol("snapshot", "rm", id); got != (outcome{stdout: id + "  freed 0.0 MB\n"}) {
		t.Errorf("by its id: %+v", got)
	}
	checkFailure(t, gaol("snapshot", "export", "one3"), "no such")
}

func TestSnapshotNotFound(t *testing.T) {
	dir := t.TempDir()
	for _, args := range []string{"snapshot rm nope", "snapshot export nope"} {
		checkFailure(t, new(fake).call(t, "", append(strings.Fields(args), "--store", dir)...), "gaol: snapshot \"nope\": no such snapshot; `gaol snapshot ls` lists")
	}
	checkFailure(t, new(fake).call(t, "", "image", "rm", "nope", "--store", dir), "gaol: image \"nope\": no such image; `gaol image ls` lists")
}

func TestSnapshotPrune(t *testing.T) {
	dir := t.TempDir()
	old := addSnapshot(t, dir, "old", "mine")
	addSnapshot(t, dir, "new", "mine")
	for _, want := range []string{old + "  freed 0.0 MB\n", ""} {
		if got := new(fake).call(t, "", "snapshot", "prune", "--store", dir); got != (outcome{stdout: want}) {
			t.Errorf("%+v, want %q", got, want)
		}
	}
	if got := new(fake).call(t, "", "snapshot", "ls", "--store", dir); strings.Count(got.stdout, "\n") != 2 || !strings.Contains(got.stdout, "mine") {
		t.Errorf("%+v", got)
	}
}

// The sizes of gaol du add up, and counting them changes nothing.
func TestDiskUsage(t *testing.T) {
	dir := t.TempDir()
	addSnapshot(t, dir, strings.Repeat("x", 2<<20), "mine")
	var got struct {
		Bytes   int64
		Folders map[string]int64
	}
	list := func() (paths []string) {
		err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			paths = append(paths, path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return paths
	}
	paths := list()
	out := new(fake).call(t, "", "du", "--json", "--store", dir)
	if err := json.Unmarshal([]byte(out.stdout), &got); err != nil || out.code != 0 || out.stderr != "" {
		t.Fatalf("%v: %+v", err, out)
	}
	if !slices.Equal(list(), paths) {
		t.Error("the store has changed")
	}
	var sum int64
	for _, bytes := range got.Folders {
		sum += bytes
	}
	if s := got.Folders[filepath.Join(dir, "snapshots")]; s < 2<<20 || s > 3<<20 || sum != got.Bytes {
		t.Errorf("%+v", got)
	}
	for _, path := range []string{"/run/gaol", "/var/cache/gaol"} {
		if _, found := got.Folders[path]; !found {
			t.Errorf("%s is missing", path)
		}
	}
	if out := new(fake).call(t, "", "du", "--store", dir); !strings.Contains(out.stdout, "\n2.1 MB ") || !strings.HasSuffix(out.stdout, " total\n") {
		t.Errorf("%+v", out)
	}
}

// A folder of the maximum depth below /workspace is deeper than that below the root.
func TestSnapshotExportDeep(t *testing.T) {
	dir := t.TempDir()
	store, err := rootfs.OpenSnapshots(dir)
	if err != nil {
		t.Fatal(err)
	}
	deep := "workspace" + strings.Repeat("/d", 256)
	if _, err := store.Add(t.Context(), []string{"deep"}, func(root string) error { return os.MkdirAll(filepath.Join(root, deep), 0o755) }); err != nil {
		t.Fatal(err)
	}
	if got := new(fake).call(t, "", "snapshot", "export", "deep", "--store", dir); got.code != 0 || !strings.Contains(got.stdout, deep[:90]) {
		t.Errorf("%d %q", got.code, got.stderr)
	}
}
