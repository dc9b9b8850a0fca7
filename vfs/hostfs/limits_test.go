package hostfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/test/tier"
)

func TestLimits(t *testing.T) {
	f, dir := newFS(t, Limits{File: 10, Entries: 20, Depth: 5})
	for n := range 21 {
		if err := f.WriteFile(fmt.Sprintf("/many/%d", n), make([]byte, n), WriteOptions{Parents: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.MkdirAll("/1/2/3/4/5/6/7", 0), f.MkdirAll("/one/two", 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(dir+"/many/3", 2<<30); err != nil {
		t.Fatal(err)
	}
	one := func(_ []byte, err error) error { return err }
	list := func(_ []fs.DirEntry, err error) error { return err }
	for _, tc := range []struct {
		name string
		err  error
		want bool
	}{
		{"a file of 10 bytes", one(f.ReadFile("/many/10")), false},
		{"a file of 11 bytes", one(f.ReadFile("/many/11")), true},
		{"a sparse file of 2 GiB", one(f.ReadFile("/many/3")), true},
		{"21 entries", list(f.ReadDir("/many")), true},
		{"a walk of 21", operations(f, "/many")["walk"](), true},
		{"a walk 7 deep", operations(f, "/1")["walk"](), true},
		{"a walk 5 deep", operations(f, "/1/2")["walk"](), false},
		{"a tar of 21", operations(f, "/many")["tar"](), true},
		{"removing 22", f.RemoveAll("/many"), true},
		{"removing the rest", f.RemoveAll("/many"), false},
	} {
		if l, is := errors.AsType[*LimitError](tc.err); is != tc.want || !is && tc.err != nil {
			t.Errorf("%s: %v", tc.name, tc.err)
		} else if is && l.Limit > 20 {
			t.Errorf("%s: %v", tc.name, tc.err)
		}
	}
}

// TestHugeSparseFile reads the end of a file of 2 GiB.
func TestHugeSparseFile(t *testing.T) {
	tier.Soak(t)
	f, dir := newFS(t, Limits{})
	const size = 2 << 30
	if err := f.WriteFile("/huge", []byte("begin"), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(dir+"/huge", size); err != nil {
		t.Fatal(err)
	}
	if err := f.Append("/huge", []byte("end"), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	file, err := f.Open("/huge")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if n, err := io.Copy(io.Discard, file); n != size+3 || err != nil {
		t.Error(n, err)
	}
	end := make([]byte, 3)
	if _, err := file.ReadAt(end, size); string(end) != "end" || err != nil {
		t.Errorf("%q, %v", end, err)
	}
}

// TestRemoveDeepTree removes a tree that is deeper than any path can name, and than the host has
// descriptors.
func TestRemoveDeepTree(t *testing.T) {
	f, dir := newFS(t, Limits{})
	const deep = 3000
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	for range deep {
		if err != nil {
			t.Fatal(err)
		}
		var next int
		asGuest(t, func() error {
			return errors.Join(unix.Mkdirat(fd, "d", 0o755), unix.Symlinkat("/", fd, "link"))
		})
		next, err = unix.Openat(fd, "d", unix.O_PATH|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
	if err := f.RemoveAll("/d"); err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(dir); len(list) != 1 || err != nil {
		t.Error(list, err)
	}
}
