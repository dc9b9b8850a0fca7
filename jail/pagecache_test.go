package jail

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gaol/jail/mounts"

	"golang.org/x/sys/unix"
)

// bits are the data that a sandbox sends to another one.
const bits = "1011001110001111010110010011"

var ones = strings.Count(bits, "1")

// imageFiles adds a file of two pages to the image for each bit, in /bits.
func imageFiles(t *testing.T) (files []*os.File) {
	t.Helper()
	image, err := tinyImage()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(image, "bits")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for i := range bits {
		name := strconv.Itoa(i)
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte("x"), 2*os.Getpagesize()), 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// cachePages brings both pages of each file into the page cache, one by one, except for the first page where
// the bit is set.
func cachePages(t *testing.T, files []*os.File, bits string) {
	t.Helper()
	for i, f := range files {
		fd, page := int(f.Fd()), make([]byte, os.Getpagesize())
		err := unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED)
		if err == nil {
			err = unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM) // no readahead
		}
		for at := range 2 {
			if err == nil && (at == 1 || bits[i] == '0') {
				_, err = unix.Pread(fd, page, int64(at*len(page)))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// cached returns 0 for each file whose first page is in the page cache, and 1 for the others.
func cached(t *testing.T, files []*os.File) string {
	t.Helper()
	var b strings.Builder
	for _, f := range files {
		m, err := unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		here := make([]byte, 1)
		if err := mincore(m, here); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(&b, 1-here[0]&1)
		if err := unix.Munmap(m); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// arrived counts the ones that a receiver gets, less the zeros that it takes for ones: if nothing arrives,
// all are the same for it.
func arrived(got string) int {
	if len(got) != len(bits) || strings.Count(got, "1") == len(bits) {
		return 0
	}
	n := 0
	for i := range bits {
		if got[i] == '1' {
			n += 2*int(bits[i]-'0') - 1
		}
	}
	return max(n, 0)
}

// The page cache of files that several sandboxes see, of the image or of a read-only mount, is no channel: a
// guest can't remove a page, and can't find out whether a page is cached without reading it. The host puts the
// message into the cache for methods that receive, and looks for it there after methods that send.
func TestEscapePageCache(t *testing.T) {
	files := imageFiles(t)
	cachePages(t, files, bits)
	if got := cached(t, files); got != bits {
		t.Skipf("the file system of %s does not free pages: %s", files[0].Name(), got)
	}
	shared := func(s *Spec) {
		source, err := unix.Open(filepath.Dir(files[0].Name()), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		dir := os.NewFile(uintptr(source), "bits")
		t.Cleanup(func() { dir.Close() })
		s.Mounts = []mounts.Mount{{Source: dir, Target: "/shared"}}
	}
	on, off := newJail(t, withAttack(t, "cache"), shared), newJail(t, withAttack(t, "cache"), shared, noFilter)
	const (
		works    = 1 << iota // without the filter; otherwise the kernel itself prevents it
		remains              // see SECURITY.md
		receives             // does not send
	)
	cachestat := receives
	if unix.Cachestat(0, &unix.CachestatRange{}, &unix.Cachestat_t{}, 0) != unix.ENOSYS { // since Linux 6.5
		cachestat |= works
	}
	for _, tc := range []struct {
		method        string
		image, shared int
	}{
		{"fadvise", works, works},
		{"pageout", 0, works},
		{"cold", 0, 0}, // a page that is reclaimed earlier than others
		{"dontneed", 0, 0},
		{"remove", 0, 0},
		{"dontcache", 0, 0},
		{"direct", 0, 0},
		{"sync", 0, 0},
		{"punch", 0, 0},
		{"nowait", receives, receives | works},
		{"cachestat", receives, cachestat},
		{"mincore", receives, receives | works | remains},
		{"fault", receives | works | remains, receives | works | remains},
		{"neighbour", receives | works | remains, receives | works | remains},
	} {
		for dir, want := range map[string]int{"/bits/": tc.image, "/shared/": tc.shared} {
			with := transfer(t, on, tc.method, dir, files, want&receives != 0)
			without := transfer(t, off, tc.method, dir, files, want&receives != 0)
			t.Logf("%s in %s: %d of %d bits with the filter, %d without", tc.method, dir, with, ones, without)
			if with > 0 && want&remains == 0 {
				t.Errorf("%s in %s: %d of %d bits arrive", tc.method, dir, with, ones)
			}
			if want&works != 0 && without < ones-1 {
				t.Errorf("%s in %s: only %d of %d bits arrive without the filter: the test proves nothing", tc.method, dir, without, ones)
			}
		}
	}
}

// transfer returns how many ones of the message a method of cache.c sends to the page cache, or receives from there.
func transfer(t *testing.T, j *Jail, method, dir string, files []*os.File, receives bool) int {
	t.Helper()
	var all, marked []string
	for i, f := range files {
		all = append(all, dir+filepath.Base(f.Name()))
		if bits[i] == '1' {
			marked = append(marked, all[i])
		}
	}
	if receives {
		cachePages(t, files, bits)
		return arrived(output(t, j, "/attack "+method+" "+strings.Join(all, " ")))
	}
	cachePages(t, files, strings.Repeat("0", len(bits)))
	output(t, j, "/attack "+method+" "+strings.Join(marked, " "))
	return arrived(cached(t, files))
}
