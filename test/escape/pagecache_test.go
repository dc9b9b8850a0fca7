package escape

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
)

// One sandbox can't remove pages of the image from the page cache, by which another one receives bits: with
// posix_fadvise 28 of 28 arrived. Package jail's TestEscapePageCache tries each method without the filter.
func TestEscapeImageCache(t *testing.T) {
	const bits = "1011001110001111010110010011"
	image := harness.DefaultImage(t)
	paths, files := unusedFiles(t, image.Root(), len(bits))
	var marked []string
	for i, p := range paths {
		if bits[i] == '1' {
			marked = append(marked, p)
		}
	}
	a, b := harness.Create(t, runtime.Options{}), harness.Create(t, runtime.Options{})
	sender, receiver := harness.Install(t, a, "cache"), harness.Install(t, b, "cache")
	receive := func() string {
		return harness.Output(t, b, runtime.RunOptions{}, receiver, append([]string{"fault"}, paths...)...)
	}
	for _, f := range files {
		evict(t, f)
	}
	if got := receive(); strings.Count(got, "1") < len(bits)-2 { // other processes may read the files
		t.Skipf("the image's file system does not free pages: %s", got)
	}
	for _, method := range []string{"fadvise", "pageout", "cold", "dontcache", "direct"} {
		harness.Output(t, a, runtime.RunOptions{}, sender, append([]string{method}, marked...)...)
		if got := receive(); strings.Contains(got, "1") {
			t.Errorf("%s: sent %s, received %s", method, bits, got)
		}
	}
	for i, f := range files {
		if bits[i] == '1' {
			evict(t, f)
		}
	}
	if got := receive(); got != bits {
		t.Errorf("sent %s by the host, received %s: the test proves nothing", bits, got)
	}
}

// unusedFiles returns files of the image that no other test reads, as the guest names them and opened by the host.
func unusedFiles(t *testing.T, root string, n int) (paths []string, files []*os.File) {
	t.Helper()
	const dir = "usr/local/lib/node_modules/npm"
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".html" {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() < 2*int64(os.Getpagesize()) {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		t.Cleanup(func() { f.Close() })
		paths, files = append(paths, strings.TrimPrefix(path, root)), append(files, f)
		if len(files) == n {
			return fs.SkipAll
		}
		return nil
	})
	if len(files) < n {
		err = errors.Join(err, errors.New("too few files"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return paths, files
}

// evict removes the pages of a file from the page cache.
func evict(t *testing.T, f *os.File) {
	t.Helper()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
}
