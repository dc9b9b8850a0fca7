package hostfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestTarRoundTrip(t *testing.T) {
	f, dir := newFS(t, Limits{})
	for p, mode := range map[string]fs.FileMode{
		"/from/plain": 0o644, "/from/run.sh": 0o755, "/from/a/b/c/deep": 0o600, "/from/new\nline": 0o640,
		"/from/\xff\xfe": 0o444, "/from/" + strings.Repeat("n", 255): 0o644, "/from/ü": 0o644,
	} {
		if err := f.WriteFile(p, []byte("data of "+p), WriteOptions{Parents: true, Mode: mode}); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(f.Symlink("../../../etc/passwd", "/from/out"), f.Symlink("plain", "/from/link"), f.MkdirAll("/from/empty", 0o700),
		f.MkdirAll("/from/closed/inside", 0o755), f.Chmod("/from/closed", 0o555), f.MkdirAll("/to", 0),
		unix.Mkfifo(dir+"/from/fifo", 0o666), os.Chtimes(dir+"/from/plain", time.Unix(1, 0), time.Unix(1e9, 0)),
		os.Chtimes(dir+"/from/closed", time.Time{}, time.Unix(1e9, 0)), unix.Lutimes(dir+"/from/link", []unix.Timeval{{Sec: 1}, {Sec: 1e9}}))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	report, left, err := tarAll(f, &archive, "/from")
	if err != nil || len(left) != 1 || left[0].Path != "/from/fifo" || report.Entries != 15 {
		t.Errorf("%+v, %v", report, err)
	}
	os.Remove(dir + "/from/fifo")
	got, err := f.Untar(&archive, "/to", UntarOptions{})
	if err != nil || got.Entries != report.Entries || got.Bytes != report.Bytes {
		t.Errorf("%+v, %v", got, err)
	}
	if diff := cmp.Diff(survey(t, dir+"/from"), survey(t, dir+"/to")); diff != "" {
		t.Error(diff)
	}
	for _, p := range []string{"/to/plain", "/to/closed", "/to/link"} {
		if i, err := f.Lstat(p); err != nil || i.ModTime().Unix() != 1e9 {
			t.Error(i, err)
		}
	}
}

// TestUntarWhileClosing closes the FS in the middle of a file, which must then be removed.
func TestUntarWhileClosing(t *testing.T) {
	f, dir := newFS(t, Limits{})
	archive := archiveOf(t, reg("whole"), reg("half"))
	const half = 512 + 512 + 512 + 2 // a header, a block, another header, and half a file
	_, err := f.Untar(io.MultiReader(bytes.NewReader(archive[:half]), closing{f}, bytes.NewReader(archive[half:])), "/", UntarOptions{})
	if !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 || list[0].Name() != "whole" {
		t.Errorf("%v, %v", list, err)
	}
}

// TestUntarIsBounded checks that Untar keeps the names of folders in memory, but not their
// headers.
func TestUntarIsBounded(t *testing.T) {
	f, _ := newMemoryFS(t, Limits{})
	const folders, header = 64, 512 << 10
	var all []tar.Header
	for i := range folders {
		all = append(all, tar.Header{Typeflag: tar.TypeDir, Name: fmt.Sprintf("ü%d/", i), PAXRecords: map[string]string{"GAOL.x": strings.Repeat("x", header)}})
	}
	archive := archiveOf(t, append(all, reg("last"))...)
	var before, after goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&before)
	rest := bytes.NewReader(archive)
	_, err := f.Untar(hookReader{rest, func() {
		if rest.Len() < 1024 && after.HeapAlloc == 0 {
			goruntime.GC()
			goruntime.ReadMemStats(&after)
		}
	}}, "/", UntarOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); after.HeapAlloc == 0 || kept > 8<<20 {
		t.Errorf("%d bytes are kept of %d folders", kept, folders)
	}
	goruntime.KeepAlive(archive)
}

// hookReader calls after after each read.
type hookReader struct {
	io.Reader
	after func()
}

func (r hookReader) Read(p []byte) (int, error) {
	defer r.after()
	return r.Reader.Read(p)
}

// tarAll packs a folder. It also returns what the archive lacks.
func tarAll(f *FS, w io.Writer, dir string) (report TarReport, left []Skip, err error) {
	report, err = f.Tar(w, dir, TarOptions{Left: func(s Skip) error {
		left = append(left, s)
		return nil
	}})
	if report.Skipped != len(left) {
		err = errors.Join(err, fmt.Errorf("%d skipped, %d reported", report.Skipped, len(left)))
	}
	return report, left, err
}

// TestTarOfUnreadableFolders checks that an unreadable folder is reported, and is an error if it
// is the packed folder itself.
func TestTarOfUnreadableFolders(t *testing.T) {
	f, _ := newFS(t, Limits{})
	if err := errors.Join(f.MkdirAll("/a/closed", 0), f.WriteFile("/a/closed/file", nil, WriteOptions{}), f.Chmod("/a/closed", 0)); err != nil {
		t.Fatal(err)
	}
	report, left, err := tarAll(f, io.Discard, "/a")
	if err != nil || report.Entries != 1 || len(left) != 1 || !errors.Is(left[0].Err, unix.EACCES) {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := f.Tar(io.Discard, "/a/closed", TarOptions{}); !errors.Is(err, unix.EACCES) {
		t.Error(err)
	}
}

// TestTarOfOwned checks that Owned packs files of the guest whatever their permissions, and
// other files only if the guest can read them.
func TestTarOfOwned(t *testing.T) {
	f, dir := newFS(t, Limits{})
	for _, p := range []string{"/a/closed/file", "/a/closed/inner/file", "/a/names/file", "/a/secret", "/a/foreign/open", "/a/search/open", "/a/others"} {
		if err := f.WriteFile(p, []byte(p), WriteOptions{Parents: true}); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(f.Symlink("/etc", "/a/closed/link"), f.Symlink("secret", "/a/to-secret"), unix.Mkfifo(dir+"/a/closed/fifo", 0o666),
		f.Chmod("/a/closed/file", 0), f.Chmod("/a/closed/inner", 0), f.Chmod("/a/closed", 0), f.Chmod("/a/names", 0o444), f.Chmod("/a/secret", 0),
		os.Lchown(dir+"/a/foreign", 0, 0), os.Chmod(dir+"/a/foreign", 0o700), os.Lchown(dir+"/a/search", 0, 0), os.Chmod(dir+"/a/search", 0o744),
		os.Lchown(dir+"/a/others", 0, 0), os.Chmod(dir+"/a/others", 0o600), f.Chmod("/a", 0))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	var left []string
	report, err := f.Tar(&archive, "/a", TarOptions{Owned: true, Left: func(s Skip) error {
		left = append(left, fmt.Sprint(s.Path, " ", s.Err))
		return nil
	}})
	if err != nil || report.Skipped != 4 {
		t.Errorf("%+v, %v", report, err)
	}
	want := []string{"/a/closed/fifo " + ErrSpecial.Error(), "/a/foreign permission denied", "/a/others permission denied", "/a/search permission denied"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Error(diff)
	}
	got := map[string]string{}
	for in := tar.NewReader(&archive); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		text, failed := io.ReadAll(in)
		if err := errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		got[h.Name] = fmt.Sprintf("%o %s%s", h.Mode, h.Linkname, text)
	}
	if diff := cmp.Diff(map[string]string{
		"closed/": "0 ", "closed/file": "0 /a/closed/file", "closed/inner/": "0 ", "closed/inner/file": "644 /a/closed/inner/file", "closed/link": "777 /etc",
		"names/": "444 ", "names/file": "644 /a/names/file", "secret": "0 /a/secret", "to-secret": "777 secret", "foreign/": "700 ", "search/": "744 ",
	}, got); diff != "" {
		t.Error(diff)
	}
	full := errors.New("full")
	if _, err := f.Tar(io.Discard, "/a", TarOptions{Owned: true, Left: func(Skip) error { return full }}); !errors.Is(err, full) {
		t.Errorf("%v, want %v", err, full)
	}
	if _, err := f.Tar(io.Discard, "/a", TarOptions{}); !errors.Is(err, unix.EACCES) {
		t.Errorf("as the guest: %v", err)
	}
}

// TestTarOfChangingFiles checks that an archive stays valid while the guest changes files.
func TestTarOfChangingFiles(t *testing.T) {
	f, dir := newFS(t, Limits{})
	const size = 1 << 20
	for _, p := range []string{"/grows", "/shrinks", "/zz"} {
		if err := f.WriteFile(p, bytes.Repeat([]byte("x"), size), WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var archive bytes.Buffer
	change := writerFunc(func(b []byte) (int, error) {
		if archive.Len() == 0 {
			err := errors.Join(f.Append("/grows", []byte("more"), WriteOptions{}), os.Remove(dir+"/zz"), unix.Mkfifo(dir+"/zz", 0o666))
			if err != nil {
				t.Error(err)
			}
		}
		if archive.Len() > size+4096 {
			if err := os.Truncate(dir+"/shrinks", 5); err != nil {
				t.Error(err)
			}
		}
		return archive.Write(b)
	})
	report, left, err := tarAll(f, change, "/")
	if err != nil || len(left) != 2 || !errors.Is(left[0].Err, ErrChanged) || !errors.Is(left[1].Err, ErrSpecial) {
		t.Errorf("%+v, %v", report, err)
	}
	sizes := map[string]int64{}
	for in := tar.NewReader(&archive); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		sizes[h.Name], err = io.Copy(io.Discard, in)
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]int64{"grows": size, "shrinks": size}, sizes); diff != "" {
		t.Error(diff)
	}
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }
