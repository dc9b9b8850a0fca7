package rootfs

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDebEntry: no entry leaves the tree, and none is anything but a file, folder or link.
func TestDebEntry(t *testing.T) {
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/secret", nil, 0o600))
	for name, entries := range map[string][]tar.Header{
		"path outside":        {{Name: "./../x", Typeflag: tar.TypeReg}},
		"absolute path":       {{Name: "/x", Typeflag: tar.TypeReg}},
		"zero in the path":    {{Name: "./x\x00y", Typeflag: tar.TypeReg}},
		"device":              {{Name: "./x", Typeflag: tar.TypeChar}},
		"pipe":                {{Name: "./x", Typeflag: tar.TypeFifo}},
		"hard link outside":   {{Name: "./x", Typeflag: tar.TypeLink, Linkname: "../../etc/passwd"}},
		"through a link":      {{Name: "./x", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "./x/y", Typeflag: tar.TypeReg}},
		"link through a link": {{Name: "./x", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "./y", Typeflag: tar.TypeLink, Linkname: "./x/secret"}},
		"twice":               {{Name: "./x", Typeflag: tar.TypeReg}, {Name: "./x", Typeflag: tar.TypeReg}},
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := newTree(filepath.Join(t.TempDir(), "tree"))
			must(t, err)
			defer tree.Close()
			b := &build{tree: tree}
			for n := range entries {
				err = b.debEntry(&entries[n], strings.NewReader(""))
				if last := n == len(entries)-1; last != (err != nil) {
					t.Errorf("entry %d: error %v", n, err)
				}
			}
			if left, _ := os.ReadDir(outside); len(left) != 1 {
				t.Errorf("%v are outside", left)
			}
		})
	}
}

// TestReasons: whatever an image leaves out has a reason.
func TestReasons(t *testing.T) {
	for _, l := range leftOut {
		if l.why == "" || !strings.HasPrefix(l.path, "/") {
			t.Errorf("%s: no reason, or no path", l.path)
		}
	}
	for _, s := range stubs {
		if s.why == "" {
			t.Errorf("%s: no reason", s.name)
		}
	}
}

// TestAptProgress moves a bar by what apt-get reports, which may be nonsense.
func TestAptProgress(t *testing.T) {
	var bar strings.Builder
	follow(strings.NewReader("pmstatus:a:50:Installing\ndlstatus:1:25.5:Retrieving a\ndlstatus:2:20:back\ndlstatus:3:x\ndlstatus:4\n\ndlstatus:5:900:too far\ndlstatus:6:75:a:b\n"), &bar, 200)
	if bar.Len() != 150 {
		t.Errorf("the bar moved by %d of 200", bar.Len())
	}
}
