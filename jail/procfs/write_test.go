package procfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, Config{Hostname: "cell"}); err != nil {
		t.Fatal(err)
	}
	files := []string{"cpuinfo", "file", "meminfo", "stat"}
	for _, r := range Sysctls {
		want := map[string]string{"kernel/hostname": "cell\n", "kernel/domainname": "(none)\n", "net/core/somaxconn": "4096\n"}[r.Name]
		if r.Source == Copied {
			text, err := os.ReadFile("/proc/sys/" + r.Name)
			if err != nil {
				continue // not on this kernel
			}
			want = string(text)
		}
		files = append(files, "sys/"+r.Name)
		if r.Name == "kernel/random/boot_id" {
			continue // random
		}
		if got, err := os.ReadFile(filepath.Join(dir, "sys", r.Name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", r.Name, got, err, want)
		}
	}
	var found []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && path != "." && info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s: %v can be written", path, info.Mode())
		}
		if !d.IsDir() {
			found = append(found, path)
		}
		return err
	})
	slices.Sort(files)
	if diff := cmp.Diff(files, found); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if err := Write(dir, Config{Hostname: "cell"}); err == nil {
		t.Error("a second Write succeeded")
	}
}
