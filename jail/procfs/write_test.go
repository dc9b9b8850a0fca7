package procfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, "cell"); err != nil {
		t.Fatal(err)
	}
	files := []string{"file", "stat"}
	for _, r := range Settings {
		want := map[string]string{"kernel/hostname": "cell\n", "kernel/domainname": "(none)\n", "net/core/somaxconn": "4096\n"}[r.Name]
		if r.From == Copied {
			text, err := os.ReadFile("/proc/sys/" + r.Name)
			if err != nil {
				continue // not on this kernel
			}
			want = string(text)
		}
		files = append(files, "sys/"+r.Name)
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
	if err := Write(dir, "cell"); err == nil {
		t.Error("files are written twice")
	}
}

func TestFormatStat(t *testing.T) {
	const want = `cpu  0 0 0 1000 0 0 0 0 0 0
cpu0 0 0 0 500 0 0 0 0 0 0
cpu3 0 0 0 500 0 0 0 0 0 0
intr 0
ctxt 0
btime 77
processes 0
procs_running 1
procs_blocked 0
softirq 0 0 0 0 0 0 0 0 0 0 0
`
	if diff := cmp.Diff(want, formatStat([]int{0, 3}, 5, 77)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The boot time and the processors are the kernel's own, give or take a second.
func TestMakeStat(t *testing.T) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	made, err := makeStat()
	if err != nil {
		t.Fatal(err)
	}
	names := func(text string) (list []string) {
		for line := range strings.Lines(text) {
			if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(name, "cpu") {
				list = append(list, name)
			}
		}
		return list
	}
	if diff := cmp.Diff(names(string(text)), names(made)); diff != "" {
		t.Errorf("processors (-kernel +made):\n%s", diff)
	}
	boot := func(text string) int64 {
		_, rest, _ := strings.Cut(text, "\nbtime ")
		line, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if diff := boot(string(text)) - boot(made); diff < -1 || diff > 1 {
		t.Errorf("boot times differ by %d seconds", diff)
	}
}

func TestParseList(t *testing.T) {
	for text, want := range map[string][]int{"0": {0}, "0-3": {0, 1, 2, 3}, "0,2-3,8": {0, 2, 3, 8}} {
		if got, err := parseList(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "a", "0-", "-1", "3-1", "0,", "0-9999999", "0 1"} {
		if got, err := parseList(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
