package hostfs

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/test/tier"
)

// raceVar sets how long TestRace runs, as a time.Duration. The default is a few seconds; make
// race uses a minute.
const raceVar = "GAOL_TEST_RACE"

const secret = "secret of the host"

// raceMode is hostile code with the guest's ids. It swaps folders with links that lead out,
// and files with FIFOs, as fast as it can, until it is killed.
func raceMode(args []string) error {
	dir := args[0]
	pairs := [][2]string{{"d", "absolute"}, {"d", "relative"}, {"f", "fifo"}, {"f", "file"}, {"d/sub", "d/link"}, {"deep/a/b", "deep/c"}, {"deep", "d"}}
	fmt.Println("up")
	for {
		for _, p := range pairs {
			_ = unix.Renameat2(unix.AT_FDCWD, dir+"/"+p[0], unix.AT_FDCWD, dir+"/"+p[1], unix.RENAME_EXCHANGE)
		}
	}
}

// playground makes the files for raceMode, and a folder of the host beside the guest's root.
// That folder belongs to the guest, so that no permission protects it.
func playground(t *testing.T) (f *FS, play, outside string) {
	t.Helper()
	f, root := newFS(t, Limits{})
	outside = t.TempDir()
	if err := errors.Join(os.WriteFile(outside+"/canary", []byte(secret), 0o600), os.Mkdir(outside+"/sub", 0o700),
		os.WriteFile(outside+"/sub/canary", []byte(secret), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"", "/canary", "/sub", "/sub/canary"} {
		if err := errors.Join(os.Lchown(outside+p, testUID, testGID), os.Chmod(outside+p, 0o777)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{root[:strings.LastIndexByte(root, '/')], outside[:strings.LastIndexByte(outside, '/')]} {
		if err := os.Chmod(p, 0o755); err != nil { // the guest can search the folders above, too
			t.Fatal(err)
		}
	}
	play = root + "/play"
	if err := restore(f, play, outside); err != nil {
		t.Fatal(err)
	}
	return f, play, outside
}

// restore makes the files that a race has removed.
func restore(f *FS, play, outside string) error {
	err := errors.Join(f.RemoveAll("/play"), f.MkdirAll("/play/d/sub", 0), f.MkdirAll("/play/deep/a/b/c/d", 0), f.MkdirAll("/play/deep/c", 0))
	for _, p := range []string{"/play/d/canary", "/play/d/sub/canary", "/play/f", "/play/deep/a/canary"} {
		err = errors.Join(err, f.WriteFile(p, []byte("the guest's own"), WriteOptions{}))
	}
	up := strings.Repeat("../", 12)
	err = errors.Join(err, f.Symlink(outside, "/play/absolute"), f.Symlink(up+outside[1:], "/play/relative"),
		f.Symlink(outside+"/sub", "/play/d/link"), f.Symlink(outside+"/canary", "/play/file"))
	return errors.Join(err, unix.Mkfifo(play+"/fifo", 0), os.Lchown(play+"/fifo", testUID, testGID))
}

func startRacer(t *testing.T, play string) (stop func()) {
	t.Helper()
	cmd := inMode(t, "race", &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: testUID, Gid: testGID}, Pdeathsig: syscall.SIGKILL,
	}, play)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// TestRaceLeaksUnguarded checks that the race works: open(2) on a path reads the host's file.
func TestRaceLeaksUnguarded(t *testing.T) {
	f, play, _ := playground(t)
	defer startRacer(t, play)()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		n, err := unix.Open(play+"/d/canary", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		file := os.NewFile(uintptr(n), "")
		data, _ := io.ReadAll(file)
		file.Close()
		if string(data) == secret {
			return
		}
	}
	_, err := f.Stat("/play")
	t.Error("the racer never won against open(2):", err)
}

// TestRace checks that, whatever the guest swaps, no operation reads or writes a file outside
// the root, or blocks.
func TestRace(t *testing.T) {
	tier.Soak(t)
	f, play, outside := playground(t)
	length := 3 * time.Second
	if v := os.Getenv(raceVar); v != "" {
		var err error
		if length, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	before := survey(t, outside)
	stop := startRacer(t, play)
	end, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var slowest atomic.Int64
	var counts sync.Map // of results, by operation
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			for end.Err() == nil {
				op := raceOps[r.IntN(len(raceOps))]
				p := racePaths[r.IntN(len(racePaths))]
				began := time.Now()
				seen, err := op.do(f, p)
				if took := int64(time.Since(began)); took > slowest.Load() {
					slowest.Store(took)
				}
				if bytes.Contains(seen, []byte(secret)) {
					t.Errorf("%s %s leaked %.100q", op.name, p, seen)
				}
				c, _ := counts.LoadOrStore(op.name, new(tally))
				c.(*tally).add(err)
			}
		})
	}
	for end.Err() == nil { // RemoveAll removes the files of the race: restore them
		select {
		case <-end.Done():
		case <-time.After(200 * time.Millisecond):
			stop()
			_ = restore(f, play, outside) // other operations run meanwhile
			stop = startRacer(t, play)
		}
	}
	all.Wait()
	stop()
	if after := survey(t, outside); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("outside was %v\nand is now %v", before, after)
	}
	if took := time.Duration(slowest.Load()); took > 30*time.Second { // a lease would block it for 45
		t.Errorf("an operation took %v", took)
	}
	for _, op := range raceOps {
		c, ok := counts.Load(op.name)
		if !ok || c.(*tally).worked.Load() == 0 {
			t.Errorf("%s never succeeded: the test proves little", op.name)
			continue
		}
		t.Logf("%s: %d worked, %d failed", op.name, c.(*tally).worked.Load(), c.(*tally).failed.Load())
	}
}

type tally struct{ worked, failed atomic.Int64 }

func (c *tally) add(err error) {
	if err == nil {
		c.worked.Add(1)
	} else {
		c.failed.Add(1)
	}
}

var racePaths = []string{
	"/play/d", "/play/d/canary", "/play/d/sub", "/play/d/sub/canary", "/play/f", "/play/file", "/play", "/play/deep/a/canary", "/play/absolute/canary",
}

// raceOps return the data read, which is searched for data from outside.
var raceOps = []struct {
	name string
	do   func(f *FS, p string) ([]byte, error)
}{
	{"read", func(f *FS, p string) ([]byte, error) { return f.ReadFile(p) }},
	{"open", func(f *FS, p string) ([]byte, error) {
		file, err := f.Open(p)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		data, _ := io.ReadAll(file)
		return data, nil
	}},
	{"write", func(f *FS, p string) ([]byte, error) {
		return nil, f.WriteFile(p, []byte("written"), WriteOptions{Parents: true})
	}},
	{"stream", func(f *FS, p string) ([]byte, error) {
		_, err := f.WriteFrom(p, bytes.NewReader([]byte("written")), WriteOptions{})
		return nil, err
	}},
	{"append", func(f *FS, p string) ([]byte, error) { return nil, f.Append(p, []byte("more"), WriteOptions{}) }},
	{"readdir", func(f *FS, p string) ([]byte, error) { _, err := f.ReadDir(p); return nil, err }},
	{"list", func(f *FS, p string) ([]byte, error) {
		_, _, err := f.List(context.Background(), p, ListOptions{})
		return nil, err
	}},
	{"stat", func(f *FS, p string) ([]byte, error) {
		i, err := f.Stat(p)
		if err == nil && i.Mode().IsRegular() && i.Size() == int64(len(secret)) {
			return []byte(secret), nil
		}
		return nil, err
	}},
	{"lstat", func(f *FS, p string) ([]byte, error) { _, err := f.Lstat(p); return nil, err }},
	{"readlink", func(f *FS, p string) ([]byte, error) { _, err := f.ReadLink("/play/absolute"); return nil, err }},
	{"mkdir", func(f *FS, p string) ([]byte, error) { return nil, f.MkdirAll(p+"/new/folder", 0) }},
	{"remove", func(f *FS, p string) ([]byte, error) { return nil, f.Remove(p + "/canary") }},
	{"removeall", func(f *FS, p string) ([]byte, error) { return nil, f.RemoveAll(p + "/sub") }},
	{"rename", func(f *FS, p string) ([]byte, error) { return nil, f.Rename(p+"/canary", "/play/f") }},
	{"symlink", func(f *FS, p string) ([]byte, error) { return nil, f.Symlink("/", p+"/s"+fmt.Sprint(rand.Int())) }},
	{"chmod", func(f *FS, p string) ([]byte, error) { return nil, f.Chmod(p, 0o755) }},
	{"glob", func(f *FS, p string) ([]byte, error) { _, err := fs.Glob(f.View(p), "*/canary"); return nil, err }},
	{"view", func(f *FS, p string) ([]byte, error) { return fs.ReadFile(f.View("/play"), "d/canary") }},
	{"tar", func(f *FS, p string) ([]byte, error) {
		var b bytes.Buffer
		_, err := f.Tar(&b, p, TarOptions{})
		return b.Bytes(), err
	}},
	{"untar", func(f *FS, p string) ([]byte, error) {
		_, err := f.Untar(bytes.NewReader(raceArchive), p, UntarOptions{})
		return nil, err
	}},
}

var raceArchive = func() []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "sub", Mode: 0o755}, {Typeflag: tar.TypeReg, Name: "sub/canary", Mode: 0o644},
		{Typeflag: tar.TypeReg, Name: "canary", Mode: 0o644}, {Typeflag: tar.TypeLink, Name: "sub/hard", Linkname: "canary"},
		{Typeflag: tar.TypeSymlink, Name: "sub/soft", Linkname: "/"},
	} {
		_ = w.WriteHeader(&h)
	}
	_ = w.Close()
	return b.Bytes()
}()
