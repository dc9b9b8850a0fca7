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
	report, err := f.Tar(&archive, "/from", TarOptions{})
	if err != nil || report.SkippedAll != 1 || report.Skipped[0].Path != "/from/fifo" || report.Entries != 15 {
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

// TestTarOfUnreadableFolders checks that an unreadable folder is reported, and is an error if it
// is the packed folder itself.
func TestTarOfUnreadableFolders(t *testing.T) {
	f, _ := newFS(t, Limits{})
	if err := errors.Join(f.MkdirAll("/a/closed", 0), f.WriteFile("/a/closed/file", nil, WriteOptions{}), f.Chmod("/a/closed", 0)); err != nil {
		t.Fatal(err)
	}
	report, err := f.Tar(io.Discard, "/a", TarOptions{})
	if err != nil || report.Entries != 1 || report.SkippedAll != 1 || !errors.Is(report.Skipped[0].Err, unix.EACCES) {
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
	if err != nil || report.SkippedAll != 4 {
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
	report, err := f.Tar(change, "/", TarOptions{})
	if err != nil || report.SkippedAll != 2 || !errors.Is(report.Skipped[0].Err, ErrChanged) || !errors.Is(report.Skipped[1].Err, ErrSpecial) {
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

// archive makes an archive from headers. Each file has the size of its header.
func archiveOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 && h.Size < 1<<20 {
			if _, err := w.Write(make([]byte, h.Size)); err != nil {
				t.Fatal(err)
			}
		} else if h.Size > 0 {
			return b.Bytes()
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func reg(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 4} }
func link(kind byte, name, to string) tar.Header {
	return tar.Header{Typeflag: kind, Name: name, Linkname: to, Mode: 0o777}
}
func folder(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}
}

var hostileArchives = []struct {
	name    string
	headers []tar.Header
	want    error // nil: unpacked
}{
	{"above", []tar.Header{reg("../x")}, ErrEntryName},
	{"above by way of", []tar.Header{reg("a/../../x")}, ErrEntryName},
	{"above as folder", []tar.Header{folder("../")}, ErrEntryName},
	{"above behind a dot", []tar.Header{reg("./../x")}, ErrEntryName},
	{"absolute", []tar.Header{reg("/x")}, ErrEntryName},
	{"the root", []tar.Header{folder("/")}, ErrEntryName},
	{"doubled slash", []tar.Header{reg("a//x")}, ErrEntryName},
	{"absolute behind a dot", []tar.Header{reg(".//x")}, ErrEntryName},
	{"below a link", []tar.Header{link(tar.TypeSymlink, "l", "/outside"), reg("l/x")}, ErrEntryKind},
	{"below a link to itself", []tar.Header{folder("d"), link(tar.TypeSymlink, "l", "d"), reg("l/x")}, ErrEntryKind},
	{"below a link, deeper", []tar.Header{link(tar.TypeSymlink, "l", ".."), reg("l/outside/x")}, ErrEntryKind},
	{"a folder that is a link", []tar.Header{link(tar.TypeSymlink, "l", "/outside"), folder("l")}, ErrEntryKind},
	{"over a link", []tar.Header{link(tar.TypeSymlink, "l", "/outside/canary"), reg("l")}, nil},
	{"hard link out", []tar.Header{link(tar.TypeLink, "h", "../outside/canary")}, ErrEntryName},
	{"hard link, absolute", []tar.Header{link(tar.TypeLink, "h", "/outside/canary")}, ErrEntryName},
	{"hard link by a link", []tar.Header{link(tar.TypeSymlink, "l", "/outside"), link(tar.TypeLink, "h", "l/canary"), reg("h")}, ErrEntryKind},
	{"hard link to a link", []tar.Header{link(tar.TypeSymlink, "l", "/outside/canary"), link(tar.TypeLink, "h", "l")}, ErrEntryKind},
	{"hard link to a folder", []tar.Header{folder("d"), link(tar.TypeLink, "h", "d")}, ErrEntryKind},
	{"hard link to itself", []tar.Header{reg("x"), link(tar.TypeLink, "x", "x")}, ErrEntryName},
	{"hard link to nothing", []tar.Header{link(tar.TypeLink, "h", "none")}, fs.ErrNotExist},
	{"hard link", []tar.Header{reg("x"), link(tar.TypeLink, "y", "./x"), link(tar.TypeLink, "y", "x")}, nil},
	{"character device", []tar.Header{{Typeflag: tar.TypeChar, Name: "d", Devmajor: 1, Devminor: 1}}, ErrEntryType},
	{"block device", []tar.Header{{Typeflag: tar.TypeBlock, Name: "d", Devmajor: 8}}, ErrEntryType},
	{"fifo", []tar.Header{{Typeflag: tar.TypeFifo, Name: "f"}}, ErrEntryType},
	{"set-id bits", []tar.Header{{Typeflag: tar.TypeReg, Name: "s", Mode: 0o7755}, {Typeflag: tar.TypeDir, Name: "d", Mode: 0o7755}}, nil},
	{"another's", []tar.Header{{Typeflag: tar.TypeReg, Name: "s", Uid: 0, Uname: "root", Mode: 0o600}}, nil},
	{"file, then folder", []tar.Header{reg("x"), folder("x")}, ErrEntryKind},
	{"file, then below it", []tar.Header{reg("x"), reg("x/y")}, ErrEntryKind},
	{"folder, then file", []tar.Header{folder("x"), reg("x")}, ErrEntryKind},
	{"folder, then link", []tar.Header{folder("x"), link(tar.TypeSymlink, "x", "/outside"), reg("x/y")}, ErrEntryKind},
	{"file, link, file", []tar.Header{reg("x"), link(tar.TypeSymlink, "x", "/outside/canary"), reg("x")}, nil},
	{"a long name", []tar.Header{reg(strings.Repeat("n", 256))}, unix.ENAMETOOLONG},
	{"a long path", []tar.Header{reg(strings.Repeat("n/", 2100) + "n")}, unix.ENAMETOOLONG},
	{"a long link", []tar.Header{link(tar.TypeSymlink, "l", strings.Repeat("n", 4096))}, errLink},
	{"links to anywhere", []tar.Header{link(tar.TypeSymlink, "l", "/etc/passwd"), link(tar.TypeSymlink, "m", "../../..")}, nil},
	{"odd names", []tar.Header{reg("new\nline"), reg("\xff"), reg("...")}, nil},
	{"a giant", []tar.Header{{Typeflag: tar.TypeReg, Name: "g", Size: 1 << 40}}, &LimitError{"bytes", 100}},
	{"too many bytes", []tar.Header{{Typeflag: tar.TypeReg, Name: "a", Size: 60}, {Typeflag: tar.TypeReg, Name: "b", Size: 60}}, &LimitError{"bytes", 100}},
	{"too many entries", []tar.Header{folder("1"), folder("2"), folder("3"), folder("4"), folder("5")}, &LimitError{"entries", 4}},
}

func TestUntarHostile(t *testing.T) {
	for _, tc := range hostileArchives {
		t.Run(tc.name, func(t *testing.T) {
			f, dir := newFS(t, Limits{Entries: 4})
			if err := errors.Join(f.MkdirAll("/in", 0), f.WriteFile("/outside/canary", []byte("canary"), WriteOptions{Parents: true})); err != nil {
				t.Fatal(err)
			}
			_, err := f.Untar(bytes.NewReader(archiveOf(t, tc.headers...)), "/in", UntarOptions{Bytes: 100})
			if l, is := errors.AsType[*LimitError](tc.want); is {
				if got, is := errors.AsType[*LimitError](err); !is || *got != *l {
					t.Errorf("%v, want %v", err, tc.want)
				}
			} else if !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
			checkUnpacked(t, dir)
		})
	}
}

// checkUnpacked checks that only /in has changed, and that it has no dangerous files.
func checkUnpacked(t testing.TB, dir string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 2 {
		t.Error(list, err)
	}
	list, err = os.ReadDir(dir + "/outside")
	if err != nil || len(list) != 1 {
		t.Error(list, err)
	}
	data, err := os.ReadFile(dir + "/outside/canary")
	if err != nil {
		t.Error(err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir+"/outside/canary", &st); err != nil || st.Nlink != 1 || st.Mode&0o777 != 0o644 || string(data) != "canary" {
		t.Error("the canary:", err, st.Nlink, string(data))
	}
	f := openFS(t, dir, Limits{})
	if err := f.Walk("/in", func(p string, i *Info, err error) error {
		if i.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeDevice|fs.ModeNamedPipe) != 0 || i.Owner() != 1000 || i.Group() != 1001 {
			return fmt.Errorf("%q: %v %d", p, i, i.Owner())
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestUntarTruncated(t *testing.T) {
	f, dir := newFS(t, Limits{})
	whole := archiveOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "x", Size: 2000})
	if _, err := f.Untar(bytes.NewReader(whole[:1500]), "/", UntarOptions{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if list, err := os.ReadDir(dir); len(list) != 0 || err != nil {
		t.Error("an incomplete file remains:", list, err)
	}
	failed := errors.New("the network is down")
	if _, err := f.Untar(io.MultiReader(bytes.NewReader(whole[:1500]), errorReader{failed}), "/", UntarOptions{}); !errors.Is(err, failed) {
		t.Error(err)
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

// TestUntarReadOnlyFolders checks that the content of read-only folders is unpacked.
func TestUntarReadOnlyFolders(t *testing.T) {
	f, dir := newFS(t, Limits{})
	closed := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o500} }
	for range 2 { // the second time, the folders exist and are read-only
		_, err := f.Untar(bytes.NewReader(archiveOf(t, closed("a/b"), closed("a"), reg("a/b/c"))), "/", UntarOptions{})
		if i, statErr := os.Stat(dir + "/a/b"); statErr != nil || i.Mode().Perm() != 0o500 {
			t.Error(i, statErr)
		}
		if i, statErr := os.Stat(dir + "/a/b/c"); statErr != nil || i.Size() != 4 {
			t.Error(i, statErr, err)
		}
	}
}

// FuzzUntar checks that no archive writes outside the folder.
func FuzzUntar(f *testing.F) {
	for _, tc := range hostileArchives {
		f.Add(archiveOf(f, tc.headers...))
	}
	f.Fuzz(func(t *testing.T, archive []byte) {
		fsys, dir := newFS(t, Limits{Entries: 50})
		if err := errors.Join(fsys.MkdirAll("/in", 0), fsys.WriteFile("/outside/canary", []byte("canary"), WriteOptions{Parents: true})); err != nil {
			t.Fatal(err)
		}
		report, err := fsys.Untar(bytes.NewReader(archive), "/in", UntarOptions{Bytes: 1 << 16})
		if report.Bytes > 1<<16 || report.Entries > 50 {
			t.Errorf("%+v, %v", report, err)
		}
		if err != nil {
			if _, is := errors.AsType[*fs.PathError](err); !is {
				t.Error(err)
			}
		}
		_ = os.Chmod(dir+"/in", 0o755)
		checkUnpacked(t, dir)
	})
}
