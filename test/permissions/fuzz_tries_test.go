package permissions

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gaol/policy"
	"gaol/runtime"
)

// triedArea is a part of the tree where things are tried, and the folders in it.
type triedArea struct {
	at      string
	folders []string
	access  runtime.Access
	mounted bool // otherwise it is copied to the guest's own tree
}

// triedAreas are nested mounts: a read-only one in a writable one, and the reverse.
var triedAreas = []triedArea{
	{at: "/workspace/a", folders: []string{"", "/b", "/b/c"}},
	{at: "/workspace/d", folders: []string{""}},
	{at: "/tmp/x", folders: []string{"", "/y"}},
	{at: "/home/node/h", folders: []string{""}},
	{at: "/data", folders: []string{"", "/s", "/s/t"}, mounted: true, access: runtime.ReadWrite},
	{at: "/data/n", folders: []string{"", "/s"}, mounted: true, access: runtime.ReadOnly},
	{at: "/data/c", folders: []string{"", "/s"}, mounted: true, access: runtime.CopyOnWrite},
	{at: "/srv/r", folders: []string{"", "/s"}, mounted: true, access: runtime.ReadOnly},
	{at: "/srv/r/w", folders: []string{"", "/s"}, mounted: true, access: runtime.ReadWrite},
}

var triedPorts = []string{"tcp://localhost:7001", "tcp://localhost:7002"}

// triedFolders are the folders where things are tried.
var triedFolders = sync.OnceValue(func() (all []string) {
	for _, a := range triedAreas {
		for _, f := range a.folders {
			all = append(all, a.at+f)
		}
	}
	return all
})

func operations(names string) (ops []policy.Operation) {
	for name := range strings.FieldsSeq(names) {
		ops = append(ops, policy.Operation(name))
	}
	return ops
}

// need is a permission that something requires.
type need struct {
	scope    string
	op       policy.Operation
	resource string
}

// try is an action of testdata/tries.mjs, and the permissions that it requires.
type try struct {
	Kind string `json:"kind"`
	Path string `json:"path"`
	To   string `json:"to,omitempty"`

	needs []need
	after int // the try that must succeed before this one, -1 for none
}

func (y try) String() string { return strings.TrimSpace(y.Kind + " " + y.Path + " " + y.To) }

// tryList is everything that a round does.
type tryList []try

// add appends a try that requires these operations of fs, by name, at each of the paths.
func (l *tryList) add(kind, at, to string, takes string, paths ...string) *try {
	y := try{Kind: kind, Path: at, To: to, after: -1}
	for _, p := range paths {
		for _, op := range operations(takes) {
			y.needs = append(y.needs, need{policy.FS, op, p})
		}
	}
	*l = append(*l, y)
	return &(*l)[len(*l)-1]
}

func (y *try) takes(scope string, op policy.Operation, resource string) *try {
	y.needs = append(y.needs, need{scope, op, resource})
	return y
}

// file tries what can be done with a file, whatever its name is by now.
func (l *tryList) file(name string, after int) {
	for _, y := range []act{
		{"stat", "stat"}, {"read", "read"}, {"readWrite", "read write"}, {"write", "write"}, {"append", "write"},
		{"truncate", "read truncate"}, {"chmod", "chmod"}, {"utimes", "chmod"},
	} {
		l.add(y.name, name, "", y.takes, name).after = after
	}
}

func (l *tryList) program(name string, after int) {
	l.add("execute", name, "", "read execute", name).takes(policy.ChildProcess, "spawn", name).after = after
}

// folder tries what can be done in a folder, and between it and the others.
func (l *tryList) folder(dir string, round int, others ...string) {
	in := func(name string) string { return dir + "/" + name }
	own := func(name string) string { return in(name) + strconv.Itoa(round) }
	l.file(in("f"), -1)
	l.program(in("prog"), -1)
	l.add("read", in("l"), "", "read", in("f")).takes(policy.FS, "readlink", in("l"))
	l.add("readlink", in("l"), "", "readlink", in("l"))
	l.add("stat", dir, "", "stat", dir)
	l.add("chmod", dir, "", "chmod", dir)
	l.add("list", dir, "", "readdir", dir)
	l.add("watch", dir, "", "readdir", dir)
	l.add("create", own("new"), "", "write", own("new"))
	l.add("mkdir", own("made"), "", "create_dir", own("made"))
	l.add("symlink", own("sym"), "", "symlink", own("sym"))
	l.add("unlink", own("gone"), "", "rm", own("gone"))
	l.add("rmdir", own("empty"), "", "rm", own("empty"))
	l.rename(own("here"), own("there"))
	l.add("rename", own("box"), own("case"), "rename rm create_dir", own("box"), own("case"))
	l.link(in("f"), own("f-too"))
	l.link(in("prog"), own("prog-too"))
	for i, to := range others {
		name := "/from" + strings.ReplaceAll(dir, "/", "-") + strconv.Itoa(round)
		l.rename(own("move"+strconv.Itoa(i)+"-"), to+name)
		l.link(in("f"), to+name+"-f")
		if i == 0 { // starting programs is slow
			l.link(in("prog"), to+name+"-prog")
		}
	}
}

// rename also tries operations on the file under its new name.
func (l *tryList) rename(from, to string) {
	l.add("rename", from, to, "rename rm", from).takes(policy.FS, "rename", to).takes(policy.FS, "write", to)
	after := len(*l) - 1
	l.file(to, after)
}

func (l *tryList) link(from, to string) {
	l.add("link", from, to, "rename write", to).takes(policy.FS, "stat", from)
	after := len(*l) - 1
	if strings.HasSuffix(from, "/prog") { // it must not change
		l.program(to, after)
		l.add("read", to, "", "read", to).after = after
		return
	}
	l.file(to, after)
}

// away tries to move a whole folder, and moves it back.
func (l *tryList) away(dir string, round int) {
	to := dir + "-away" + strconv.Itoa(round)
	l.add("rename", dir, to, "rename rm create_dir", to) // for dir itself, its parent folder decides
	after := len(*l) - 1
	for _, in := range append([]string{dir}, within(dir)...) {
		at := to + strings.TrimPrefix(in, dir)
		l.file(at+"/f", after)
		l.program(at+"/prog", after)
		l.add("create", at+"/anew", "", "write", at+"/anew").after = after
		l.add("unlink", at+"/anew", "", "rm", at+"/anew").after = len(*l) - 1
		l.add("list", at, "", "readdir", at).after = after
	}
	l.add("rename", to, dir, "rename rm create_dir", to).after = after
}

// within are the folders below one.
func within(dir string) (below []string) {
	for _, f := range triedFolders() {
		if strings.HasPrefix(f, dir+"/") {
			below = append(below, f)
		}
	}
	return below
}

// allTries is everything that is tried, in order.
func allTries(round int) tryList {
	var l tryList
	folders := triedFolders()
	for i, dir := range folders {
		l.folder(dir, round, folders[(i+1)%len(folders)], folders[(i+5)%len(folders)])
	}
	l.program(busybox, -1)
	l.file("/etc/passwd", -1)
	for i, at := range triedPorts {
		port := strconv.Itoa(7001 + i)
		l.add("listen", port, "", "").takes(policy.Network, "listen", at)
		l.add("connect", port, "", "").takes(policy.Network, "connect", at).takes(policy.Network, "fetch", at)
	}
	l.add("udp", "7003", "", "").takes(policy.Network, "connect", "udp://localhost:7003").takes(policy.Network, "listen", "udp://localhost:7003")
	l.add("signal", "", "", "").takes(policy.Process, "signal", "")
	l.add("inspect", "", "", "").takes(policy.Process, "inspect", "")
	for _, name := range fuzzEnv {
		l.add("env", name, "", "").takes(policy.Env, "read", name)
	}
	for _, dir := range folders {
		at := dir + "/prog"
		l.add("rename", at, at+"-away", "rename rm", at).takes(policy.FS, "rename", at+"-away").takes(policy.FS, "write", at+"-away")
		after := len(l) - 1
		l.program(at+"-away", after)
		l.add("rename", at+"-away", at, "rename rm write", at+"-away").takes(policy.FS, "write", at).after = after
		l.away(dir, round)
	}
	return l
}

var fuzzEnv = []string{"FUZZ_ONE", "FUZZ_TWO", "OTHER"}

// fuzzTree creates an area's folders on the host.
func fuzzTree(t testing.TB, a triedArea) string {
	t.Helper()
	top := t.TempDir()
	files := map[string]fs.FileMode{"f": 0o644, "prog": 0o755}
	folders := []string{}
	for r := range fuzzRounds {
		for _, name := range []string{"gone", "here", "move0-", "move1-"} {
			files[name+strconv.Itoa(r)] = 0o644
		}
		folders = append(folders, "empty"+strconv.Itoa(r), "box"+strconv.Itoa(r))
	}
	program := native(t, "nothing", "-static", "-nostdlib")
	for _, f := range a.folders {
		dir := filepath.Join(top, f)
		err := os.MkdirAll(dir, 0o755)
		for name, mode := range files {
			content := []byte("text")
			if name == "prog" {
				content = program
			}
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), content, mode))
		}
		for _, name := range folders {
			err = errors.Join(err, os.Mkdir(filepath.Join(dir, name), 0o755))
		}
		if a.mounted {
			err = errors.Join(err, os.Symlink("f", filepath.Join(dir, "l")))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range triedAreas { // mount points for nested mounts
		if below, ok := strings.CutPrefix(b.at, a.at+"/"); ok && b.mounted {
			if err := os.Mkdir(filepath.Join(top, below), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return top
}

// try tries everything in a runtime with these permissions, and then in runs with fewer.
func (f *fuzz) try(t *testing.T, m setMaker, what string) {
	p := m.permissions()
	rt, err := runtime.Create(t.Context(), f.w.options(t, p))
	if err != nil {
		f.refused(t, what, p, err)
		return
	}
	defer rt.Close()
	f.made++
	p = p.Over(policy.Default())
	other := bystander(t, rt).PID()
	l := allTries(0)
	codes, err := attempted(t, rt, l, other, policy.Permissions{})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	expectation{p: p, free: f.free}.check(t, what, l, codes)
	for r := 1; r < fuzzRounds; r++ {
		inner, l := m.narrower(p), allTries(r)
		codes, err := attempted(t, rt, l, other, inner)
		if err != nil {
			f.refused(t, what, inner, err)
			continue
		}
		f.narrowed++
		expectation{p: inner.Over(p), outer: &p, free: f.free}.check(t, what+" for a run", l, codes)
	}
}
