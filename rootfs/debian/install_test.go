package debian

import (
	"archive/tar"
	"os"
	"strings"
	"testing"

	"gaol/rootfs/tree"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestHostileEntry checks that no entry escapes the tree, and that only files, folders and links are accepted.
func TestHostileEntry(t *testing.T) {
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
			dir, err := tree.Open(t.TempDir())
			must(t, err)
			defer dir.Close()
			for n := range entries {
				err = addEntry(dir, "test", &entries[n], strings.NewReader(""))
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

// TestReasons checks that each omitted file and package is listed with a reason.
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
