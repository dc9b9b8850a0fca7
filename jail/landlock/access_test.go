package landlock

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRights checks for each right that an operation succeeds without a ruleset, fails with
// the documented errno without the right, and succeeds with it.
func TestRights(t *testing.T) {
	needRoot(t)
	for _, tc := range []struct {
		right Access
		act   string
		args  string // paths in the tree
		want  syscall.Errno
	}{
		{ReadFile, "open", "a/file", unix.EACCES},
		{ReadFile, "chdir open", "a file", unix.EACCES},
		{WriteFile, "write", "a/file", unix.EACCES},
		{WriteFile, "append", "a/file", unix.EACCES},
		{ReadDir, "list", "a", unix.EACCES},
		{RemoveDir, "rmdir", "a/empty", unix.EACCES},
		{RemoveDir, "rename", "a/empty a/other", unix.EACCES},
		{RemoveFile, "unlink", "a/file", unix.EACCES},
		{RemoveFile, "rename", "a/file a/other", unix.EACCES},
		{RemoveFile, "exchange", "a/file a/full", unix.EACCES},
		{MakeChar, "mkchar", "a/new", unix.EACCES},
		{MakeBlock, "mkblock", "a/new", unix.EACCES},
		{MakeDir, "mkdir", "a/new", unix.EACCES},
		{MakeDir, "rename", "a/empty a/other", unix.EACCES},
		{MakeReg, "create", "a/new", unix.EACCES},
		{MakeReg, "rename", "a/file a/other", unix.EACCES},
		{MakeReg, "link", "a/file a/other", unix.EACCES},
		{MakeSock, "bind", "a/new", unix.EACCES},
		{MakeFifo, "mkfifo", "a/new", unix.EACCES},
		{MakeSym, "symlink", "a/new", unix.EACCES},
		{Refer, "rename", "a/file b/other", unix.EXDEV},
		{Refer, "link", "a/file b/other", unix.EXDEV},
		{Refer, "rename", "a/full b/other", unix.EXDEV},
		{Truncate, "empty", "a/file", unix.EACCES},
		{Truncate, "truncate", "a/file", unix.EACCES},
		{Truncate, "ftruncate", "a/file", unix.EACCES},
		{IoctlDev, "ioctl", "a/door", unix.EACCES},
	} {
		abi, _, name := (&Ruleset{Handled: tc.right}).Needs()
		t.Run(name+" "+tc.act+" "+tc.args, func(t *testing.T) {
			needABI(t, abi)
			try := func(rules ...Rule) syscall.Errno {
				dir := tree(t)
				ruleset := makeBelow(t, dir, &Ruleset{Handled: tc.right, Rules: rules})
				return under(t, ruleset, in(dir, tc.act, tc.args))[0]
			}
			if dir := tree(t); under(t, nil, in(dir, tc.act, tc.args))[0] != 0 {
				t.Error("fails without a ruleset")
			}
			if got := try(); got != tc.want {
				t.Errorf("without the right: %v, want %v", got, tc.want)
			}
			if got := try(Rule{Path: "/", Tree: true, Access: tc.right}); got != 0 {
				t.Errorf("with the right: %v", got)
			}
		})
	}
}

// in returns an act with paths in dir; the second argument of "chdir open" is a bare name.
func in(dir, name, paths string) act {
	args := strings.Fields(paths)
	for i := range args {
		if name != "chdir open" || i == 0 {
			args[i] = filepath.Join(dir, args[i])
		}
	}
	return do(name, args...)
}

// TestReferIsAlwaysHandled checks that any handled right denies renames from folder to
// folder, and which error the kernel returns if two apply.
func TestReferIsAlwaysHandled(t *testing.T) {
	needRoot(t)
	needABI(t, 2)
	dir := tree(t)
	move := in(dir, "rename", "a/file b/other")
	if got := under(t, makeBelow(t, dir, &Ruleset{Handled: MakeSym}), move)[0]; got != unix.EXDEV {
		t.Errorf("with another right handled: %v", got)
	}
	r := &Ruleset{Handled: Refer | MakeReg, Rules: []Rule{{Path: "/", Tree: true, Access: Refer}}}
	if got := under(t, makeBelow(t, dir, r), move)[0]; got != unix.EACCES {
		t.Errorf("without a right to make files: %v", got)
	}
	// A file must not gain rights by a move: b grants writing, a does not.
	r = &Ruleset{Handled: Refer | WriteFile, Rules: []Rule{
		{Path: "/", Tree: true, Access: Refer},
		{Path: "/b", Tree: true, Access: WriteFile},
	}}
	if got := under(t, makeBelow(t, dir, r), move, in(dir, "rename", "b/file a/other")); names(got) != "EXDEV ok" {
		t.Errorf("to the folder that grants writing, and back: %s", names(got))
	}
}

// TestFileRule checks that a rule for a file grants access to that file only.
func TestFileRule(t *testing.T) {
	needRoot(t)
	needABI(t, 3)
	dir := tree(t)
	ruleset := makeBelow(t, dir, &Ruleset{
		Handled: ReadFile | ReadDir | MakeReg | Truncate,
		Rules:   []Rule{{Path: "/a/file", Access: ReadFile | ReadDir | MakeReg}},
	})
	got := under(t, ruleset,
		in(dir, "open", "a/file"), in(dir, "open", "a/full/inner"), in(dir, "list", "a"),
		in(dir, "truncate", "a/file"), in(dir, "create", "a/new"), in(dir, "stat", "b/file"), in(dir, "path", "b/file"))
	if names(got) != "ok EACCES EACCES EACCES EACCES ok ok" {
		t.Error(names(got))
	}
	// A rule without a right that applies to files does nothing.
	ruleset = makeBelow(t, dir, &Ruleset{Handled: ReadDir, Rules: []Rule{{Path: "/a/file", Access: ReadDir}}})
	if got := under(t, ruleset, in(dir, "list", "a")); names(got) != "EACCES" {
		t.Error(names(got))
	}
}

// TestFileRuleFollowsFile checks that a rule is for the file, not for its name.
func TestFileRuleFollowsFile(t *testing.T) {
	needRoot(t)
	dir := tree(t)
	needABI(t, 1)
	ruleset := makeBelow(t, dir, &Ruleset{Handled: ReadFile, Rules: []Rule{{Path: "/a/file", Access: ReadFile}}})
	if err := os.Rename(dir+"/a/file", dir+"/b/moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/a/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := under(t, ruleset, in(dir, "open", "a/file"), in(dir, "open", "b/moved")); names(got) != "EACCES ok" {
		t.Error(names(got))
	}
}
