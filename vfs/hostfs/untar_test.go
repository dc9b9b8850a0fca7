package hostfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// archive makes an archive from headers. Each file is of its header's size.
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

// checkUnpacked checks that only /in has changed, and that it contains no dangerous files.
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
