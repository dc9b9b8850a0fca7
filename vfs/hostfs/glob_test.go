package hostfs

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGlob(t *testing.T) {
	f, _ := newFS(t, Limits{})
	for _, p := range []string{"/a/b/x.js", "/a/b/c/y.js", "/a/z.js", "/a/z.ts", "/q*/x.js", "/x.js"} {
		if err := f.WriteFile(p, nil, WriteOptions{Parents: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Symlink("a", "/l"), f.Symlink("/", "/a/loop")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		pattern string
		want    []string
	}{
		{"/a/*.js", []string{"/a/z.js"}},
		{"/**/*.js", []string{"/a/b/c/y.js", "/a/b/x.js", "/a/z.js", "/q*/x.js", "/x.js"}},
		{"/a/**/c/**", []string{"/a/b/c", "/a/b/c/y.js"}},
		{"/a/**/b/*", []string{"/a/b/c", "/a/b/x.js"}},
		{"/l/*.ts", []string{"/l/z.ts"}},
		{`/q\*/*`, []string{"/q*/x.js"}},
		{"/[a]/z.??", []string{"/a/z.js", "/a/z.ts"}},
		{"/a/z.js", []string{"/a/z.js"}},
		{"/", []string{"/"}},
		{"/none/*", nil}, {"/x.js/*", nil}, {"/none", nil}, {"/a/*/*/*/*", nil},
	} {
		got, err := f.Glob(tc.pattern)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", tc.pattern, err, diff)
		}
	}
	if _, err := f.Glob("/a/[/*"); err == nil {
		t.Error("a bad pattern was accepted")
	}
}
