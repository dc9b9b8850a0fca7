package cli

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/rootfs"
	"gaol/test/harness"
	"gaol/test/tier"
)

// The commands of docs/hosting.md make a copy of a store that is complete.
func TestBackupOfStore(t *testing.T) {
	tier.Soak(t)
	page, err := os.ReadFile("../../docs/hosting.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^sudo tar .*$`).FindAllString(string(page), -1)
	if len(commands) != 2 {
		t.Fatalf("the page has %d commands with tar", len(commands))
	}
	from, to := t.TempDir(), t.TempDir()
	fillStore(t, from+"/gaol")
	for i, dir := range []string{from, to} {
		command := strings.NewReplacer("sudo ", "", "--directory /var/lib", "--directory "+dir, "gaol-store.tar", from+"/copy.tar").Replace(commands[i])
		run(t, "sh", "-c", command)
	}
	if diff := cmp.Diff(tree(t, from+"/gaol"), tree(t, to+"/gaol")); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(to + "/gaol/downloads"); err == nil {
		t.Error("the copy has downloads")
	}
	restored, err := rootfs.Open(to + "/gaol")
	if err != nil {
		t.Fatal(err)
	}
	snapshots, err := restored.Snapshots()
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*rootfs.Store{"app": restored, "saved": snapshots} {
		if _, err := s.Lookup(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// fillStore makes a store with an image, a snapshot and downloads. Both have a folder called tmp.
func fillStore(t *testing.T, dir string) {
	t.Helper()
	s, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(t.Context(), harness.BusyboxImage(t), rootfs.ImportOptions{Name: "app"}); err != nil {
		t.Fatal(err)
	}
	snapshots, err := s.Snapshots()
	if err != nil {
		t.Fatal(err)
	}
	_, err = snapshots.Add(context.Background(), []string{"saved"}, func(root string) error {
		if err := os.MkdirAll(root+"/workspace/tmp", 0o750); err != nil {
			return err
		}
		return os.WriteFile(root+"/workspace/tmp/f", []byte("kept"), 0o640)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir+"/downloads/x", 0o755); err != nil {
		t.Fatal(err)
	}
}

// tree lists the modes and sizes of the images, snapshots and names of a store.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, part := range []string{"images", "names", "snapshots/images", "snapshots/names"} {
		err := filepath.WalkDir(filepath.Join(dir, part), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			found[strings.TrimPrefix(path, dir)] = info.Mode().String()
			if info.Mode().IsRegular() {
				text, err := os.ReadFile(path)
				found[strings.TrimPrefix(path, dir)] += " " + string(text[:min(len(text), 100)])
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
