package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/rootfs/layer"
)

// fakeRunner runs no command: its functions, by the command, write the folder of changes.
type fakeRunner struct {
	commands map[string]func(t *testing.T, dir string)
	key      string
	t        *testing.T
	ran      []StepCommand
}

func (r *fakeRunner) Key() string { return "permissions" + r.key }

func (r *fakeRunner) RunStep(_ context.Context, i *Image, c StepCommand, collect func(*os.File) error) error {
	r.ran = append(r.ran, c)
	fmt.Fprintln(c.Output, "output of", c.Script)
	do := r.commands[c.Script]
	if do == nil {
		return errors.New("it failed")
	}
	if _, err := os.Stat(i.Root()); err != nil {
		return err
	}
	dir := r.t.TempDir()
	do(r.t, dir)
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return collect(f)
}

// writes returns a command that writes files, whose names may end in a slash.
func writes(files ...string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		for _, name := range files {
			at := filepath.Join(dir, name)
			must(t, os.MkdirAll(filepath.Dir(at), 0o755))
			if strings.HasSuffix(name, "/") {
				must(t, os.MkdirAll(at, 0o755))
				continue
			}
			must(t, os.WriteFile(at, []byte("new "+name), 0o600))
			must(t, os.Chown(at, 166536, 166536))
		}
	}
}

func (s *Store) derive(t *testing.T, o DeriveOptions) *Image {
	t.Helper()
	i, err := s.Derive(t.Context(), o)
	must(t, err)
	checkVerify(t, i, all)
	return i
}

// TestDerive checks the files, the config and the variables of a derived image.
func TestDerive(t *testing.T) {
	s, base := tinyBuild(t)
	before := mustRead(t, base.Root()+"/etc/passwd")
	r := &fakeRunner{t: t, commands: map[string]func(*testing.T, string){
		"change": func(t *testing.T, dir string) {
			writes("app/made", "etc/passwd", "tmp/left", "var/tmp/left", "usr/share/zoneinfo/only", "run/gaol/program", "dev/null", "home/node/own")(t, dir)
			must(t, unix.Mknod(dir+"/etc/hosts", unix.S_IFCHR, 0)) // removed
			must(t, unix.Lsetxattr(dir+"/usr/share/zoneinfo", "trusted.overlay.opaque", []byte("y"), 0))
			must(t, os.Symlink("made", dir+"/app/link"))
			must(t, os.Link(dir+"/app/made", dir+"/app/linked"))
			must(t, unix.Mkfifo(dir+"/etc/group", 0o666)) // which images cannot have
		},
		"run": writes("app/b"),
	}}
	from := t.TempDir()
	writes("one", "folder/two", "folder/.hidden")(t, from)
	must(t, os.Symlink("nowhere", from+"/link"))
	root, err := os.OpenRoot(from)
	must(t, err)
	defer func() { _ = root.Close() }()
	var progress strings.Builder
	i := s.derive(t, DeriveOptions{From: base.ID, Name: "derived", Progress: &progress, Steps: []Step{
		{Env: map[string]string{"A": "1", "PATH": "/app:$PATH"}},
		{Dir: "/app"},
		{Run: "change", Runner: r},
		{Env: map[string]string{"B": `${A}\$A$missing`}},
		{User: "node"},
		{Dir: "sub"},
		{Run: "run", Runner: r},
		{Copy: &Copy{Root: root, From: []string{"one", "folder"}, To: "."}},
		{Copy: &Copy{Root: root, From: []string{"folder/two"}, To: "/renamed"}},
		{Copy: &Copy{Root: root, From: []string{"one"}, To: "/etc"}},
		{Copy: &Copy{Root: root, From: []string{"link"}, To: "/renamed-link"}},
	}})
	for name, want := range map[string]string{
		"app/made": "-rw-r--r--", "app/link": "Lrwxrwxrwx made", "app/linked": "-rw-r--r--", "etc/group": "none", "renamed-link": "Lrwxrwxrwx nowhere", "app/b": "-rw-r--r--", "etc/hosts": "none", "etc/passwd": "-rw-r--r--",
		"usr/share/zoneinfo/only": "-rw-r--r--", "usr/share/zoneinfo/Europe": "none", "tmp/left": "none", "var/tmp/left": "none", "run/gaol": "none",
		"dev/null": "none", "home/node/own": "-rw-r--r--", "app/sub/one": "-rw-r--r--", "app/sub/two": "-rw-r--r--", "app/sub/.hidden": "-rw-r--r--",
		"renamed": "-rw-r--r--", "etc/one": "-rw-r--r--", "usr/local/bin/node": "-rwxr-xr-x",
	} {
		if got := describe(filepath.Join(i.Root(), name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := string(mustRead(t, base.Root()+"/etc/passwd")); got != string(before) {
		t.Errorf("the base's file is now %q", got)
	}
	checkVerify(t, base, all)
	if inode(t, i.Root()+"/app/made") != inode(t, i.Root()+"/app/linked") {
		t.Error("a hard link is a copy")
	}
	if ours, theirs := inode(t, i.Root()+nodeBinary), inode(t, base.Root()+nodeBinary); ours != theirs {
		t.Error("Node is copied")
	}
	if got := r.ran[1]; got.Dir != "/app/sub" || got.Owner || !r.ran[0].Owner || r.ran[0].Dir != "/app" || got.Env["B"] != "1$A" {
		t.Errorf("%+v", r.ran)
	}
	want := map[string]string{"A": "1", "B": "1$A", "PATH": "/app:/usr/local/bin:/usr/bin:/bin:/home/node/.local/bin"}
	if got := i.Env(); len(got) != 3 || got["A"] != want["A"] || got["B"] != want["B"] || got["PATH"] != want["PATH"] || i.Imported.Config.WorkingDir != "/app/sub" {
		t.Errorf("variables %q, config %+v", got, i.Imported.Config)
	}
	if !slices.Contains(i.Names, "derived") || !strings.Contains(progress.String(), "step 3/11: RUN change\noutput of change\n") {
		t.Errorf("names %v, progress %s", i.Names, &progress)
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Sys().(*syscall.Stat_t).Ino
}

// TestDeriveCache checks which steps are performed again, and which images are left.
func TestDeriveCache(t *testing.T) {
	s, base := tinyBuild(t)
	r := &fakeRunner{t: t, commands: map[string]func(*testing.T, string){"a": writes("a"), "b": writes("b")}}
	steps := func() []Step { return []Step{{Run: "a", Runner: r}, {Run: "b", Runner: r}} }
	count := func(want int, o DeriveOptions) *Image {
		t.Helper()
		r.ran = nil
		i := s.derive(t, o)
		if len(r.ran) != want {
			t.Errorf("%d commands were run, want %d", len(r.ran), want)
		}
		return i
	}
	first := count(2, DeriveOptions{From: base.ID, Name: "x", Steps: steps()})
	if again := count(0, DeriveOptions{From: base.ID, Name: "y", Steps: steps()}); again.ID != first.ID || !slices.Contains(again.Names, "y") {
		t.Errorf("%+v", again)
	}
	count(1, DeriveOptions{From: base.ID, Steps: append(steps()[:1], Step{User: "node"}, steps()[1])})
	count(2, DeriveOptions{From: base.ID, Steps: append([]Step{{Env: map[string]string{"A": "b"}}}, steps()...)})
	r.key = "other permissions"
	count(2, DeriveOptions{From: base.ID, Steps: steps()})
	if got := pruned(t, s); len(got) != 3 { // a, and both with the variable
		t.Errorf("pruned %v", got)
	}
	count(2, DeriveOptions{From: base.ID, Name: "x", Steps: steps(), NoCache: true})
	if images, err := s.List(); err != nil || len(images) != 2 {
		t.Errorf("%v, %v", images, err)
	}
	if _, err := s.Derive(t.Context(), DeriveOptions{From: base.ID, Steps: append(steps(), Step{Run: "fails", Runner: r}), NoCache: true}); err == nil ||
		err.Error() != "derive image: step 3/3: RUN fails: it failed" {
		t.Errorf("error %v", err)
	}
	if images, err := s.List(); err != nil || len(images) != 2 {
		t.Errorf("after a failure: %v, %v", images, err)
	}
	left, err := os.ReadDir(s.tmp())
	if err != nil || len(left) > 0 {
		t.Errorf("temporary folders: %v, %v", left, err)
	}
}

// TestDeriveTrust checks that a command, and files of the host, can make Node untrusted, and nothing else.
func TestDeriveTrust(t *testing.T) {
	s, base := tinyBuild(t)
	r := &fakeRunner{t: t, commands: map[string]func(*testing.T, string){"a": writes("a"), "node": writes(nodeBinary), "moved": func(t *testing.T, dir string) { // to another program of the base
		must(t, os.MkdirAll(dir+path.Dir(nodeBinary), 0o755))
		must(t, os.Symlink("/usr/bin/busybox", dir+nodeBinary))
	}}}
	run, env, node, moved := Step{Run: "a", Runner: r}, Step{Env: map[string]string{"A": "b"}}, Step{Run: "node", Runner: r}, Step{Run: "moved", Runner: r}
	for _, tt := range []struct {
		steps   []Step
		trust   bool
		trusted bool
		forks   bool // the base's Node
	}{
		{[]Step{env}, false, true, true},
		{[]Step{run}, false, false, true},
		{[]Step{run, env}, false, false, true},
		{[]Step{run}, true, true, true},
		{[]Step{run, env, run}, false, false, true},
		{[]Step{node}, false, false, false},
		{[]Step{run, node, env}, false, false, false},
		{[]Step{{Env: map[string]string{"NODE_VERSION": "24.0.0"}}, moved, run}, false, false, false},
	} {
		i := s.derive(t, DeriveOptions{From: base.ID, Steps: tt.steps, TrustNode: tt.trust, NoCache: true})
		if err := i.CanFork(); (err == nil) != tt.trusted {
			t.Errorf("%v, trust %v: %v", tt.steps, tt.trust, err)
		}
		zygote, err := i.ZygoteImage()
		if (err == nil) != tt.forks || err == nil && zygote.ID != base.ID && zygote.ID != i.ID {
			t.Errorf("%v: zygotes use %+v, %v", tt.steps, zygote, err)
		}
		must(t, os.RemoveAll(i.dir)) // images of the same content would be merged
	}
}

// TestDeriveHostile derives from changes that no program of a sandbox has made in good faith.
func TestDeriveHostile(t *testing.T) {
	d := newArchive(t)
	d.fill(t)
	s := d.open(t)
	outside := t.TempDir()
	writes("m/secret.crt")(t, outside)
	r := &fakeRunner{t: t, commands: map[string]func(*testing.T, string){
		"kinds": func(t *testing.T, dir string) {
			writes("plain", ".wh.plain", ".wh..wh..opq", "strange\n\xff")(t, dir)
			must(t, unix.Mknod(dir+"/null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
			must(t, unix.Mkfifo(dir+"/pipe", 0o666))
			must(t, os.Chmod(dir+"/plain", 0o777|os.ModeSetuid))
			must(t, os.Symlink(outside, dir+"/link"))
			must(t, os.Symlink("/", dir+"/proc"))
		},
		"links": func(t *testing.T, dir string) { // the base's folders become links that lead out
			must(t, os.Mkdir(dir+"/usr", 0o755))
			must(t, os.Mkdir(dir+"/usr/share", 0o755))
			must(t, os.Symlink(outside, dir+"/usr/share/ca-certificates"))
			must(t, os.Symlink(outside, dir+"/home"))
			must(t, os.Symlink(outside, dir+"/opt"))
		},
		"opt":   writes("opt/a"),
		"deep":  writes(strings.Repeat("d/", 200)),
		"large": writes("a", "b", "c"),
	}}
	step := func(command string) Step { return Step{Run: command, Runner: r} }
	i := s.derive(t, DeriveOptions{Steps: []Step{step("kinds"), step("links"), {With: []string{"gamma"}}, step("opt")}})
	for name, want := range map[string]string{
		"plain": "-rwxr-xr-x", ".wh.plain": "-rw-r--r--", ".wh..wh..opq": "-rw-r--r--", "strange\n\xff": "-rw-r--r--", "null": "none", "pipe": "none",
		"link": "Lrwxrwxrwx " + outside, "proc": "drwxr-xr-x", "usr/bin/gamma": "-rwxr-xr-x", "opt/a": "-rw-r--r--", "home/node": "drwxr-xr-x",
	} {
		if got := describe(filepath.Join(i.Root(), name)); got != want {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
	}
	if text := mustRead(t, i.Root()+"/etc/ssl/certs/ca-certificates.crt"); strings.Contains(string(text), "secret") {
		t.Errorf("certificates %q", text)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("the host's folder has %v, %v", left, err)
	}
	for _, tt := range []struct {
		o    DeriveOptions
		want error
	}{
		{DeriveOptions{Steps: []Step{step("deep")}}, layer.ErrRefused},
		{DeriveOptions{Steps: []Step{step("large")}, Limits: layer.Limits{Bytes: 10}}, layer.ErrTooLarge},
		{DeriveOptions{Steps: []Step{step("large")}, Limits: layer.Limits{Entries: 2}}, layer.ErrTooLarge},
		{DeriveOptions{Steps: []Step{step("opt"), step("kinds")}, Limits: layer.Limits{Bytes: 20}}, layer.ErrTooLarge}, // of all steps together
	} {
		if _, err := s.Derive(t.Context(), tt.o); !errors.Is(err, tt.want) {
			t.Errorf("%v: %v", tt.o.Steps, err)
		}
	}
}

// TestDerivePackages checks which packages a step adds.
func TestDerivePackages(t *testing.T) {
	d := newArchive(t)
	d.fill(t)
	s := d.open(t)
	base, err := s.Build(t.Context(), BuildOptions{})
	must(t, err)
	gets := d.gets.Load()
	i := s.derive(t, DeriveOptions{Steps: []Step{{With: []string{"gamma"}}}})
	names := func(i *Image) (list []string) {
		for _, p := range i.Packages {
			list = append(list, p.Name)
		}
		return list
	}
	if got := names(i); !slices.Equal(got, []string{"alpha", "beta", "gamma"}) || d.gets.Load() != gets+1 || !i.Imported.TrustNode {
		t.Errorf("packages %v, %d downloads, %+v", got, d.gets.Load()-gets, i.Imported)
	}
	both := s.derive(t, DeriveOptions{From: i.ID, Steps: []Step{{With: []string{"both"}}}})
	if got := names(both); !slices.Equal(got, []string{"alpha", "beta", "delta", "gamma", "perl", "perl-base"}) {
		t.Errorf("packages %v", got)
	}
	d.add(t, "beta", "3-1", "", map[string]string{"usr/share/beta": "3"})
	newer := s.derive(t, DeriveOptions{From: base.ID, NoCache: true, Steps: []Step{{With: []string{"gamma"}}}})
	if newer.Packages[1].Version != "3-1" || describe(newer.Root()+"/usr/share/beta") != "-rw-r--r--" {
		t.Errorf("packages %+v", newer.Packages)
	}
	if _, err := s.Derive(t.Context(), DeriveOptions{Steps: []Step{{With: []string{"missing"}}}}); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("error %v", err)
	}
}

// TestDeriveErrors checks that wrong options are refused.
func TestDeriveErrors(t *testing.T) {
	s, base := tinyBuild(t)
	for _, tt := range []struct {
		o    DeriveOptions
		want string
	}{
		{DeriveOptions{}, "derive image: 0 steps, want 1 to 100"},
		{DeriveOptions{Steps: make([]Step, 101)}, "101 steps"},
		{DeriveOptions{Steps: make([]Step, 1)}, "step 1/1: WORKDIR : want exactly one of"},
		{DeriveOptions{Steps: []Step{{User: "node", Dir: "/"}}}, "want exactly one of"},
		{DeriveOptions{Steps: []Step{{Run: "true"}}}, "Runner is nil"},
		{DeriveOptions{Steps: []Step{{User: "nobody"}}}, `user "nobody": want root or node`},
		{DeriveOptions{Steps: []Step{{Env: map[string]string{"A=B": ""}}}}, `"A=B": not a valid name`},
		{DeriveOptions{Steps: []Step{{Env: map[string]string{"A": "\x00"}}}}, `"A": not a valid name or value`},
		{DeriveOptions{Steps: slices.Repeat([]Step{{Env: map[string]string{"A": "0$A$A"}}}, 60)}, "step 16/60: ENV A: " + ErrVariables.Error()},
		{DeriveOptions{Steps: []Step{{With: []string{"jq"}}}}, errNoPackages.Error()},
		{DeriveOptions{Name: "step-" + strings.Repeat("a", 32), Steps: []Step{{User: "root"}}}, "results of steps"},
		{DeriveOptions{Name: "BAD", Steps: []Step{{User: "root"}}}, "BAD"},
	} {
		tt.o.From = base.ID
		if _, err := s.Derive(t.Context(), tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt.o, err)
		}
	}
	if _, err := s.Derive(t.Context(), DeriveOptions{From: "missing", Steps: []Step{{User: "root"}}}); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if images, err := s.List(); err != nil || len(images) != 1 {
		t.Errorf("%v, %v", images, err)
	}
}
