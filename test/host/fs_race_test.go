package host

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
	"gaol/vfs/hostfs"
)

// raceVar is how long TestFilesWhileGuestRaces and TestRace of vfs/hostfs run, as a
// time.Duration. Without it they take some seconds; make race sets a minute.
const raceVar = "GAOL_TEST_RACE"

const hostMark = "secret of the host "

// hostSecret is of a size by which a walk recognizes it: files of the guest never have that
// size.
var hostSecret = strings.Repeat(hostMark, 42)

// raceField is what guest and host race for: a folder in the guest's own layer, and mounts
// whose sources are next to a folder of the host that is not shared.
type raceField struct {
	places, links         []string
	rt                    *runtime.NodeRuntime
	rw, cow, outside      string // of the host's
	guestsFile, hostsFile []byte // /etc/passwd
}

func newRaceField(t *testing.T) *raceField {
	t.Helper()
	base := harness.HostTree(t, map[string]string{"outside/canary": hostSecret, "outside/sub/canary": hostSecret, "cow/d/kept": "cow's", "rw/kept": "rw's"})
	f := &raceField{
		places: []string{"/workspace/own", "/workspace/rw", "/workspace/cow"},
		rw:     base + "/rw", cow: base + "/cow", outside: base + "/outside",
	}
	f.links = []string{"/", "/proc/1/root", f.outside, f.outside + "/canary", "/etc", "../outside", "/proc/1/root" + f.outside, strings.Repeat("../", 12) + f.outside[1:]}
	// No file mode protects it, only the way in which paths are followed.
	for p := f.outside; p != filepath.Dir(os.TempDir()); p = filepath.Dir(p) {
		if err := os.Chmod(p, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"/sub", "/canary", "/sub/canary"} {
		if err := os.Chmod(f.outside+p, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	f.rt = harness.Create(t, runtime.Options{Mounts: []runtime.Mount{
		{Source: f.rw, Target: f.places[1], Access: runtime.ReadWrite}, {Source: f.cow, Target: f.places[2], Access: runtime.CopyOnWrite},
	}})
	var err, err2 error
	f.guestsFile, err = f.rt.FS().ReadFile("/etc/passwd")
	f.hostsFile, err2 = os.ReadFile("/etc/passwd")
	if err = errors.Join(err, err2, f.rt.FS().MkdirAll(f.places[0], 0)); err != nil || bytes.Equal(f.guestsFile, f.hostsFile) {
		t.Fatalf("%v, or /etc/passwd is one on both sides", err)
	}
	return f
}

// paths are the targets of the host's operations below one folder.
func (f *raceField) paths(at string) []string {
	return []string{at + "/d", at + "/d/canary", at + "/d/sub", at + "/d/sub/canary", at + "/f", at + "/d" + f.outside + "/canary", at + "/d/etc/passwd"}
}

// start runs the guest's race until stop is called.
func (f *raceField) start(t *testing.T, length time.Duration) (stop func()) {
	t.Helper()
	code, err := os.ReadFile("testdata/race.mjs")
	if err != nil {
		t.Fatal(err)
	}
	what, err := json.Marshal(map[string]any{"places": f.places, "links": f.links})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	up, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var once sync.Once
		res, err := f.rt.Run(ctx, string(code), runtime.RunOptions{
			Env: map[string]string{"RACE": string(what)}, Timeout: length + time.Minute,
			OnStdout: func([]byte) { once.Do(func() { close(up) }) },
		})
		if errors.Is(err, context.Canceled) {
			err = nil // as expected
		} else if err == nil {
			err = fmt.Errorf("the guest's race ended: %q %s", res.Cause, res.Stderr)
		}
		ended <- err
	}()
	select {
	case <-up:
	case err := <-ended:
		t.Fatal(err)
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// raceCount counts how often something worked.
type raceCount struct{ worked, failed atomic.Int64 }

// Hostile code of the guest swaps names while the host works on them. No byte of the host's
// files is read or written.
func TestFilesWhileGuestRaces(t *testing.T) {
	tier.Soak(t)
	length := 3 * time.Second
	if v := os.Getenv(raceVar); v != "" {
		var err error
		if length, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	f := newRaceField(t)
	before := []map[string]string{contents(t, f.outside), contents(t, f.cow)}
	stop := f.start(t, length)
	end, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	ops, reads := make([]raceCount, len(raceOps)), make([]raceCount, len(f.places))
	var slowest atomic.Int64
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(n)))
			for end.Err() == nil {
				op, place := r.IntN(len(raceOps)), r.IntN(len(f.places))
				paths := f.paths(f.places[place])
				path := paths[r.IntN(len(paths))]
				began := time.Now()
				seen, err := raceOps[op].do(f.rt.FS(), path)
				slowest.Store(max(slowest.Load(), int64(time.Since(began))))
				ops[op].add(err == nil)
				if bytes.Contains(seen, []byte(hostMark)) || bytes.Contains(seen, f.hostsFile) {
					t.Errorf("%s %s returned %.100q", raceOps[op].name, path, seen)
				}
				_, err = f.rt.FS().ReadFile(paths[1])
				reads[place].add(err == nil)
			}
		})
	}
	won := 0 // how often following links naively would have lost; it takes longer on a busy machine
	for late := time.Now().Add(length + 20*time.Second); end.Err() == nil || won == 0 && time.Now().Before(late); time.Sleep(100 * time.Microsecond) {
		if text, err := os.ReadFile(f.rw + "/d/canary"); err == nil && string(text) == hostSecret {
			won++
		}
	}
	all.Wait()
	stop()
	if after := []map[string]string{contents(t, f.outside), contents(t, f.cow)}; !gocmp.Equal(before, after) {
		t.Errorf("the host's files: %s", gocmp.Diff(before, after))
	}
	if now, err := f.rt.FS().ReadFile("/etc/passwd"); !bytes.Equal(now, f.guestsFile) || err != nil {
		t.Errorf("the image's file is %q, %v", now, err)
	}
	if now, err := os.ReadFile("/etc/passwd"); !bytes.Equal(now, f.hostsFile) || err != nil {
		t.Errorf("the host's file is %q, %v", now, err)
	}
	if took := time.Duration(slowest.Load()); took > 30*time.Second { // waiting for a lease would take 45 s
		t.Errorf("an operation took %v", took)
	}
	for i := range ops {
		ops[i].report(t, raceOps[i].name, ops[i].worked.Load() > 0)
	}
	for i := range reads {
		reads[i].report(t, "reads in "+f.places[i], reads[i].worked.Load() > 0 && reads[i].failed.Load() > 0)
	}
	if t.Logf("the race was won %d times by open(2), the slowest operation took %v", won, time.Duration(slowest.Load())); won == 0 {
		t.Error("open(2) never won: this test proves little")
	}
}

func (c *raceCount) add(worked bool) {
	if worked {
		c.worked.Add(1)
	} else {
		c.failed.Add(1)
	}
}

func (c *raceCount) report(t *testing.T, what string, enough bool) {
	t.Helper()
	if t.Logf("%s: %d worked, %d did not", what, c.worked.Load(), c.failed.Load()); !enough {
		t.Errorf("%s: this test proves little", what)
	}
}

// contents returns all files in a folder of the host, and when they were changed.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := e.Info()
		var text []byte
		if err == nil && i.Mode().IsRegular() {
			text, err = os.ReadFile(p)
		}
		all[p] = fmt.Sprintf("%v %v %q", i.Mode(), i.ModTime().UnixNano(), text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// A walk or an archive that followed a link to / would find much: only so much is searched.
const (
	raceEntries = 300
	raceBytes   = 256 << 10
)

// raceOps return the data seen, to be searched for data of the host.
var raceOps = []struct {
	name string
	do   func(f hostfs.Files, path string) ([]byte, error)
}{
	{"read", func(f hostfs.Files, p string) ([]byte, error) { return f.ReadFile(p) }},
	{"write", func(f hostfs.Files, p string) ([]byte, error) {
		return nil, f.WriteFile(p, []byte("written"), hostfs.WriteOptions{})
	}},
	{"append", func(f hostfs.Files, p string) ([]byte, error) {
		return nil, f.Append(p, []byte("more"), hostfs.WriteOptions{})
	}},
	{"list", func(f hostfs.Files, p string) ([]byte, error) {
		_, _, err := f.List(context.Background(), p, hostfs.ListOptions{})
		return nil, err
	}},
	{"walk", func(f hostfs.Files, p string) ([]byte, error) {
		var seen []byte
		n := 0
		err := f.Walk(p, func(path string, i *hostfs.Info, err error) error {
			if n++; n > raceEntries {
				return fs.SkipAll
			}
			if err == nil && i.Mode().IsRegular() && i.Size() == int64(len(hostSecret)) {
				seen = append(seen, hostSecret...)
			}
			return nil
		})
		return seen, err
	}},
	{"mkdir", func(f hostfs.Files, p string) ([]byte, error) { return nil, f.MkdirAll(p+"/new", 0) }},
	{"rename", func(f hostfs.Files, p string) ([]byte, error) {
		return nil, f.Rename(p, racePlace(p)+"/moved")
	}},
	{"rename into", func(f hostfs.Files, p string) ([]byte, error) {
		return nil, f.Rename(racePlace(p)+"/f", p+"/new")
	}},
	{"removeall", func(f hostfs.Files, p string) ([]byte, error) { return nil, f.RemoveAll(p) }},
	{"chmod", func(f hostfs.Files, p string) ([]byte, error) { return nil, f.Chmod(p, 0o755) }},
	{"tar", func(f hostfs.Files, p string) ([]byte, error) {
		var b bytes.Buffer
		_, err := f.Tar(&b, p, hostfs.TarOptions{Bytes: raceBytes, Entries: raceEntries})
		return b.Bytes(), err
	}},
	{"untar", func(f hostfs.Files, p string) ([]byte, error) {
		_, err := f.Untar(bytes.NewReader(raceArchive), p, hostfs.UntarOptions{})
		return nil, err
	}},
}

// racePlace is /workspace/rw of /workspace/rw/d/canary.
func racePlace(path string) string { return strings.Join(strings.SplitN(path, "/", 4)[:3], "/") }

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
