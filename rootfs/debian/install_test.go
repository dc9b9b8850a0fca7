package debian

import (
	"archive/tar"
	"bufio"
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"gaol/rootfs/layer"
	"gaol/test/tartest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestHostileEntry checks that no entry escapes the tree, and that it gets only files, folders and links.
func TestHostileEntry(t *testing.T) {
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/secret", nil, 0o600))
	for name, entries := range map[string][]tar.Header{
		"path outside":        {{Name: "./../x", Typeflag: tar.TypeReg}},
		"absolute path":       {{Name: "/x", Typeflag: tar.TypeReg}},
		"hard link outside":   {{Name: "./x", Typeflag: tar.TypeLink, Linkname: "../../etc/passwd"}},
		"through a link":      {{Name: "./x", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "./x/y", Typeflag: tar.TypeReg}},
		"link through a link": {{Name: "./x", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "./y", Typeflag: tar.TypeLink, Linkname: "./x/secret"}},
		"device":              {{Name: "./x", Typeflag: tar.TypeChar}},
		"pipe":                {{Name: "./x", Typeflag: tar.TypeFifo}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tree, err := layer.Open(dir, layer.Limits{})
			must(t, err)
			defer tree.Close()
			var archive []tartest.Entry
			for _, h := range entries {
				archive = append(archive, tartest.Entry{Header: h})
			}
			err = tree.ApplyPackage(t.Context(), bytes.NewReader(tartest.Pack(archive...)), func(h *tar.Header, content *bufio.Reader) (string, error) {
				return (&apt{}).place("test", h, content)
			})
			if dropped := tree.Dropped == 1; dropped == (err != nil) {
				t.Errorf("error %v, dropped %d", err, tree.Dropped)
			}
			left, _ := os.ReadDir(dir)
			if beside, _ := os.ReadDir(outside); len(beside) != 1 || len(left) != len(entries)-1 {
				t.Errorf("%v are outside, %v inside", beside, left)
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
	for _, s := range slices.Concat(stubs, defaultStubs) {
		if s.why == "" {
			t.Errorf("%s: no reason", s.name)
		}
	}
}
