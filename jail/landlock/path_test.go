package landlock

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOtherPaths checks that rules apply however a file is reached.
func TestOtherPaths(t *testing.T) {
	needRoot(t)
	needABI(t, 1)
	dir := tree(t)
	for _, d := range []string{"twin", "a/twin"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"a/up": "../b/file", "b/up": "../a/file"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(dir+"/b/file", dir+"/a/hard"); err != nil {
		t.Fatal(err)
	}
	before := []act{
		do("private"), // mounts of the copy must not propagate
		in(dir, "mount", "a twin"), in(dir, "mount", "b a/twin"),
	}
	ruleset := makeBelow(t, dir, &Ruleset{Handled: ReadFile, Rules: []Rule{{Path: "/a", Tree: true, Access: ReadFile}}})
	for _, tc := range []struct {
		path, want string
	}{
		{dir + "/a/file", "ok"},
		{dir + "/b/file", "EACCES"},
		{dir + "/twin/file", "ok"},       // a bind mount of a granted folder
		{dir + "/a/twin/file", "ok"},     // mounted below a granted folder
		{dir + "/a/../b/file", "EACCES"}, // only passes through a granted folder
		{dir + "/b/../a/file", "ok"},
		{dir + "/a/up", "EACCES"}, // by a symbolic link
		{dir + "/b/up", "ok"},
		{"/proc/self/root" + dir + "/a/file", "ok"},
		{"/proc/self/root" + dir + "/b/file", "EACCES"},
		{dir + "/a/hard", "ok"}, // a hard link to a file that is denied elsewhere
	} {
		got := run(t, ruleset, order{Before: before, Acts: []act{do("open", tc.path)}})
		if names(got) != tc.want {
			t.Errorf("%s: %s, want %s", tc.path, names(got), tc.want)
		}
	}
}

// TestDescriptors checks that opening an O_PATH descriptor again by /proc/self/fd grants
// nothing.
func TestDescriptors(t *testing.T) {
	needRoot(t)
	needABI(t, 1)
	dir := tree(t)
	ruleset := makeBelow(t, dir, &Ruleset{Handled: ReadFile, Rules: []Rule{{Path: "/a", Tree: true, Access: ReadFile}}})
	got := under(t, ruleset, in(dir, "reopen", "a/file"), in(dir, "reopen", "b/file"), in(dir, "chmod", "b/file"))
	if names(got) != "ok EACCES ok" { // no right of Landlock covers chmod
		t.Error(names(got))
	}
}

// TestMountIsDenied checks that any handled right denies mounts.
func TestMountIsDenied(t *testing.T) {
	needRoot(t)
	needABI(t, 1)
	dir := tree(t)
	got := under(t, makeBelow(t, dir, &Ruleset{Handled: MakeSym}), in(dir, "mount", "a b"))
	if names(got) != "EPERM" {
		t.Error(names(got))
	}
	if got := run(t, nil, order{Before: []act{do("private")}, Acts: []act{in(dir, "mount", "a b")}}); names(got) != "ok" {
		t.Errorf("without a ruleset: %s", names(got))
	}
}
