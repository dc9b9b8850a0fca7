package permissions

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// fuzzSeedVar and fuzzSetsVar have TestPermissionFuzz make other sets, and more: see make fuzz.
const (
	fuzzSeedVar = "GAOL_TEST_FUZZ_SEED"
	fuzzSetsVar = "GAOL_TEST_FUZZ_SETS"
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

// fuzzRounds is how many runs try everything in one runtime. Each has its own files to move
// and remove.
const fuzzRounds = 3

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

// rename also tries what the file allows under its new name.
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

// fuzzWorld is what each runtime of the test starts with.
type fuzzWorld struct {
	copied map[string]fs.FS
	mounts []runtime.Mount // of sources that no test changes
}

func newFuzzWorld(t testing.TB) fuzzWorld {
	w := fuzzWorld{copied: map[string]fs.FS{}}
	for _, a := range triedAreas {
		switch {
		case !a.mounted:
			w.copied[a.at] = os.DirFS(fuzzTree(t, a))
		case a.access != runtime.ReadWrite:
			w.mounts = append(w.mounts, runtime.Mount{Source: fuzzTree(t, a), Target: a.at, Access: a.access})
		}
	}
	return w
}

func (w fuzzWorld) options(t testing.TB, p policy.Permissions) runtime.Options {
	mounts := slices.Clone(w.mounts)
	for _, a := range triedAreas {
		if a.mounted && a.access == runtime.ReadWrite {
			mounts = append(mounts, runtime.Mount{Source: fuzzTree(t, a), Target: a.at, Access: a.access})
		}
	}
	env := map[string]string{}
	for _, name := range fuzzEnv {
		env[name] = "x"
	}
	return harness.Options(runtime.Options{Folders: w.copied, Mounts: mounts, Env: env, Permissions: p})
}

// attempted returns the codes of all tries of a round.
func attempted(t testing.TB, rt *runtime.NodeRuntime, l tryList, other int, p policy.Permissions) ([]string, error) {
	t.Helper()
	res, err := rt.Run(t.Context(), source(t, "tries.mjs"), runtime.RunOptions{Permissions: p, Stdin: strings.NewReader(text(t, map[string]any{"tries": l, "other": other}))})
	if err != nil {
		return nil, err
	}
	var codes []string
	if err := res.Decode(&codes); err != nil || len(codes) != len(l) {
		t.Fatalf("%v, %d of %d: cause %q, exit code %d: %s", err, len(codes), len(l), res.Cause, res.ExitCode, res.Stderr)
	}
	return codes, nil
}

// bystander is another run's process.
func bystander(t testing.TB, rt *runtime.NodeRuntime) *runtime.Process {
	t.Helper()
	p, err := rt.SpawnCode(t.Context(), `setInterval(() => {}, 1e6)`, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The kernel allows a guest exactly what the permissions say. For random permissions that a
// runtime accepts, every action is tried at every place.
func TestPermissionFuzz(t *testing.T) {
	seed, sets := uint64(1), 20
	if text := os.Getenv(fuzzSeedVar); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := strconv.Atoi(os.Getenv(fuzzSetsVar)); err == nil {
		sets = n
	}
	t.Logf("%s=%d", fuzzSeedVar, seed)
	w := newFuzzWorld(t)
	free := harness.CreateExact(t, w.options(t, policy.Open()))
	other := bystander(t, free)
	codes, err := attempted(t, free, allTries(0), other.PID(), policy.Permissions{})
	if err != nil {
		t.Fatal(err)
	}
	f := fuzz{w: w, free: codes}
	for i := range sets {
		f.try(t, setMaker{rand.New(rand.NewPCG(seed, uint64(i)))}, fmt.Sprintf("set %d", i))
	}
	t.Logf("%d of %d sets accepted, %d of %d for runs", f.made, sets, f.narrowed, f.made*(fuzzRounds-1))
	if f.made*2 < sets || f.narrowed*5 < f.made {
		t.Error("too few: this test proves little")
	}
}

// fuzz counts.
type fuzz struct {
	w              fuzzWorld
	free           []string
	made, narrowed int
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
	judge{p: p, free: f.free}.check(t, what, l, codes)
	for r := 1; r < fuzzRounds; r++ {
		inner, l := m.narrower(p), allTries(r)
		codes, err := attempted(t, rt, l, other, inner)
		if err != nil {
			f.refused(t, what, inner, err)
			continue
		}
		f.narrowed++
		judge{p: inner.Over(p), outer: &p, free: f.free}.check(t, what+" for a run", l, codes)
	}
}

func (f *fuzz) refused(t *testing.T, what string, p policy.Permissions, err error) {
	t.Helper()
	if _, ok := errors.AsType[*policy.RuleError](err); !ok && !errors.Is(err, runtime.ErrUnsupported) {
		t.Errorf("%s: %v\n%s", what, err, text(t, p))
	}
	if testing.Verbose() {
		t.Logf("%s: %v", what, err)
	}
}
