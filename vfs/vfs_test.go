package vfs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePath(t *testing.T) {
	for _, tc := range []struct {
		in string
		ok bool
	}{
		{"/", true}, {"/a", true}, {"/a/b c", true}, {"/a/\xff", true}, {"/..a", true},
		{"", false}, {"a", false}, {"./a", false}, {"/a/", false}, {"/a//b", false}, {"/a/../b", false},
		{"/.", false}, {"/..", false}, {"//a", false}, {"/a\x00b", false},
		{"/" + strings.Repeat("a", maxPath), false},
	} {
		if p, err := ParsePath(tc.in); (err == nil) != tc.ok || tc.ok && string(p) != tc.in {
			t.Errorf("ParsePath(%q) = %q, %v", tc.in, p, err)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	f.Add("/workspace")
	f.Add("/../etc")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePath(s)
		if err != nil {
			return
		}
		for _, element := range strings.Split(string(p)[1:], "/") {
			if element == "." || element == ".." || element == "" && p != "/" {
				t.Errorf("ParsePath(%q) let %q through", s, element)
			}
		}
	})
}

func TestOwn(t *testing.T) {
	for _, tc := range []struct {
		cwd  Path
		dirs []Path
	}{
		{"/workspace", []Path{Home, Workspace}},
		{"/", []Path{Home, Workspace}},
		{"/srv/app", []Path{Home, Workspace, "/srv/app"}},
		{"/processes", []Path{Home, Workspace, "/processes"}},
	} {
		if diff := cmp.Diff(tc.dirs, Own(tc.cwd)); diff != "" {
			t.Errorf("Own(%q) (-want +got):\n%s", tc.cwd, diff)
		}
	}
}
