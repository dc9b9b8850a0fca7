package hostfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/test/tier"
)

// outcome is the result of one operation.
type outcome struct {
	text string
	err  error
}

func (o outcome) kind() string {
	var errno syscall.Errno
	switch {
	case o.err == nil:
		return "ok"
	case errors.As(o.err, &errno):
		return errno.Error()
	}
	return o.err.Error()
}

// tree has the operations of both sides.
type tree struct {
	read     func(p string) ([]byte, error)
	write    func(p string, data []byte) error
	add      func(p string, data []byte) error
	list     func(p string) ([]fs.DirEntry, error)
	stat     func(p string) (fs.FileInfo, error)
	lstat    func(p string) (fs.FileInfo, error)
	mkdirAll func(p string) error
	remove   func(p string) error
	clear    func(p string) error
	rename   func(from, to string) error
	symlink  func(text, p string) error
	readLink func(p string) (string, error)
	chmod    func(p string, m fs.FileMode) error
}

func ours(f *FS) tree {
	return tree{
		read:     f.ReadFile,
		write:    func(p string, data []byte) error { return f.WriteFile(p, data, WriteOptions{}) },
		add:      func(p string, data []byte) error { return f.Append(p, data, WriteOptions{Mode: 0o600}) },
		list:     f.ReadDir,
		stat:     func(p string) (fs.FileInfo, error) { return f.Stat(p) },
		lstat:    func(p string) (fs.FileInfo, error) { return f.Lstat(p) },
		mkdirAll: func(p string) error { return f.MkdirAll(p, 0o755) },
		remove:   f.Remove, clear: f.RemoveAll, rename: f.Rename, symlink: f.Symlink, readLink: f.ReadLink, chmod: f.Chmod,
	}
}

func theirs() tree {
	return tree{
		read:  os.ReadFile,
		write: func(p string, data []byte) error { return os.WriteFile(p, data, 0o644) },
		add: func(p string, data []byte) error {
			file, err := os.OpenFile(p, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
			if err != nil {
				return err
			}
			defer file.Close()
			_, err = file.Write(data)
			return err
		},
		list: os.ReadDir, stat: os.Stat, lstat: os.Lstat,
		mkdirAll: func(p string) error { return os.MkdirAll(p, 0o755) },
		remove:   os.Remove, clear: os.RemoveAll, rename: syscall.Rename, symlink: os.Symlink, readLink: os.Readlink, chmod: os.Chmod,
	}
}

// inChroot runs do on a thread with the root dir and the guest's ids. It affects only system
// calls of this thread, so that do must not use other goroutines.
func inChroot(t *testing.T, dir string, calls <-chan func(), ready chan<- error) {
	goruntime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
	err := errors.Join(unix.Unshare(unix.CLONE_FS), unix.Chroot(dir), unix.Chdir("/"))
	unix.Umask(0o022)
	_, _, failed := kernfile.SetFileIDs(testUID, testGID)
	ready <- errors.Join(err, failed)
	for call := range calls {
		call()
	}
}

// batchSize is the number of operations that one side runs before the other: switching
// threads takes longer than an operation.
const batchSize = 50

// operation is an operation that both sides run.
type operation struct {
	what      string
	loose     bool // its error may be of another kind
	do        func(tree) outcome
	got, want outcome
}

func (s script) batch() []operation {
	batch := make([]operation, batchSize)
	for i := range batch {
		o := &batch[i]
		o.what, o.loose, o.do = s.next()
	}
	return batch
}

func (o operation) same() bool {
	switch {
	case (o.got.err == nil) != (o.want.err == nil):
		return false
	case o.want.err == nil:
		return o.got.text == o.want.text
	}
	return o.loose || alike(o.got.kind(), o.want.kind())
}

// errRootKind is the common kind of the different errors of operations on the root.
const errRootKind = "the root itself: invalid argument"

func alike(a, b string) bool { return a == b || strings.HasSuffix(a, errRootKind) }

// TestDifferential runs random operations on an FS, and with the standard library in a
// chroot. It compares the results and the trees.
func TestDifferential(t *testing.T) {
	tier.Soak(t)
	const operations = 100_000
	f, one := newMemoryFS(t, Limits{})
	_, two := newMemoryFS(t, Limits{})
	seed := uint64(20_261_121)
	if s := os.Getenv("GAOL_TEST_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	s := script{rand.New(rand.NewPCG(seed, 1))}
	calls, ready := make(chan func()), make(chan error)
	defer close(calls)
	go inChroot(t, two, calls, ready)
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	mine, reference := ours(f), theirs()
	for i := 0; i < operations; i += batchSize {
		batch := s.batch()
		for j := range batch {
			batch[j].got = batch[j].do(mine)
		}
		done := make(chan struct{})
		calls <- func() {
			defer close(done)
			for j := range batch {
				batch[j].want = batch[j].do(reference)
			}
		}
		<-done
		for j, o := range batch {
			seen[strings.Fields(o.what)[0]+": "+o.want.kind()]++
			if !o.same() {
				compareTrees(t, one, two)
				t.Fatalf("seed %d, operation %d, %s:\n got %.200q %v\nwant %.200q %v", seed, i+j, o.what, o.got.text, o.got.err, o.want.text, o.want.err)
			}
		}
		s.guest(one, two)
		if i%2000 == 0 { // chmod makes more and more files inaccessible
			compareTrees(t, one, two)
			emptyBoth(t, one, two)
		}
	}
	compareTrees(t, one, two)
	for _, kind := range []string{"write", "read", "rename", "removeall", "readdir", "mkdir", "symlink", "append"} {
		if seen[kind+": ok"] == 0 {
			t.Errorf("no %s ever succeeded: the test proves little", kind)
		}
	}
	if testing.Verbose() {
		t.Log(seen)
	}
}

func emptyBoth(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if err := os.RemoveAll(dir + "/" + e.Name()); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// compareTrees compares names, kinds, permissions, owners, numbers of links and content.
func compareTrees(t *testing.T, one, two string) {
	t.Helper()
	a, b := survey(t, one), survey(t, two)
	for p, x := range a {
		if y, ok := b[p]; !ok || x != y {
			t.Errorf("%.60q: %.60q here, %.60q there", p, x, y)
		}
		delete(b, p)
	}
	for p, y := range b {
		t.Errorf("%.60q: nothing here, %.60q there", p, y)
	}
	if t.Failed() {
		t.FailNow()
	}
}

func survey(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	surveyBelow(t, dir, "", all)
	return all
}

func surveyBelow(t *testing.T, dir, below string, all map[string]string) {
	t.Helper()
	list, err := os.ReadDir(dir + below)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		p := below + "/" + e.Name()
		i, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		st := i.Sys().(*syscall.Stat_t)
		text := fmt.Sprint(i.Mode(), st.Uid, st.Gid, " ")
		switch i.Mode().Type() {
		case fs.ModeDir:
			surveyBelow(t, dir, p, all)
		case fs.ModeSymlink:
			target, err := os.Readlink(dir + p)
			if err != nil {
				t.Fatal(err)
			}
			text += target
		case 0:
			data, err := os.ReadFile(dir + p)
			if err != nil {
				t.Fatal(err)
			}
			if len(data) > 1<<20 {
				data = bytes.TrimRight(data, "\x00")
			}
			text += fmt.Sprint(st.Nlink, i.Size(), " ") + string(data)
		}
		all[p] = text
	}
}
