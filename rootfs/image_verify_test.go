package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/rootfs/tree"
)

// all reads all files; quick reads none but those with a new modification time.
var all, quick = VerifyOptions{}, VerifyOptions{Sample: 1}

func checkVerify(t *testing.T, i *Image, o VerifyOptions, want ...Difference) {
	t.Helper()
	got, err := i.Verify(t.Context(), o)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%+v (-want +got):\n%s", o, diff)
	}
}

func checkVerifyFails(t *testing.T, i *Image, o VerifyOptions, want error) {
	t.Helper()
	if got, err := i.Verify(t.Context(), o); !errors.Is(err, want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%+v: got %+v, %v; want %v", o, got, err, want)
	}
}

func tinyBuild(t *testing.T) (*Store, *Image) {
	t.Helper()
	newRegistry(t).servePackages(t)
	s := openTiny(t, t.TempDir())
	i, err := s.Build(t.Context(), BuildOptions{Minimal: true})
	must(t, err)
	return s, i
}

func TestVerify(t *testing.T) {
	_, i := tinyBuild(t)
	checkVerify(t, i, all)
	checkVerify(t, i, quick)
	// As an OCI runtime makes missing mount points.
	must(t, os.MkdirAll(filepath.Join(i.Root(), "mnt/data"), 0o755))
	must(t, os.WriteFile(filepath.Join(i.Root(), "etc/passwd"), nil, 0o644))
	want := []Difference{
		{Path: "/etc/passwd", Change: tree.Content, Want: passwdSum(t, i), Got: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{Path: "/mnt", Change: tree.Added, Got: "drwxr-xr-x"},
	}
	checkVerify(t, i, all, want...)
	checkVerify(t, i, quick, want...)
	// A forged time hides the content from all but a full comparison, and a random one.
	must(t, os.Chtimes(filepath.Join(i.Root(), "etc/passwd"), tree.Epoch, tree.Epoch))
	checkVerify(t, i, all, want...)
	checkVerify(t, i, VerifyOptions{Sample: i.Size}, want...)
	held, err := i.Hold()
	must(t, err)
	must(t, held.Close())
}

// passwdSum returns the hash of /etc/passwd in the list of the image.
func passwdSum(t *testing.T, i *Image) string {
	t.Helper()
	list, err := os.ReadFile(filepath.Join(i.dir, imageList))
	must(t, err)
	_, line, _ := strings.Cut(string(list), `"etc/passwd" "`)
	sum, _, found := strings.Cut(line, `"`)
	if !found || len(sum) != 64 {
		t.Fatalf("no /etc/passwd in %s", list)
	}
	return sum
}

// TestVerifyRecord checks that changes of the list and of image.json are noticed.
func TestVerifyRecord(t *testing.T) {
	for _, name := range []string{imageList, imageFile} {
		s, i := tinyBuild(t)
		file := filepath.Join(i.dir, name)
		text, err := os.ReadFile(file)
		must(t, err)
		changed := strings.Replace(string(text), i.ID, idPrefix+strings.Repeat("0", 64), 1)
		if name == imageList {
			changed = strings.Replace(changed, "passwd", "passwD", 1)
		}
		if changed == string(text) {
			t.Fatalf("%s: nothing was changed", name)
		}
		must(t, os.WriteFile(file, []byte(changed), 0o600))
		again, err := s.get(filepath.Base(i.dir))
		must(t, err)
		checkVerifyFails(t, again, all, ErrRecord)
		checkVerifyFails(t, again, quick, ErrRecord)
	}
}

// TestVerifyRemoved removes the list of an image, and then the image.
func TestVerifyRemoved(t *testing.T) {
	s, i := tinyBuild(t)
	must(t, os.Remove(filepath.Join(i.dir, imageList)))
	checkVerifyFails(t, i, all, ErrRecord)
	checkVerifyFails(t, i, quick, ErrRecord)
	remove(t, s, i.ID)
	checkVerifyFails(t, i, all, ErrNotFound)
	again, err := s.Build(t.Context(), BuildOptions{Minimal: true})
	must(t, err)
	checkVerify(t, again, all)
}

func TestVerifyImported(t *testing.T) {
	s := openTiny(t, t.TempDir())
	_, err := s.Import(t.Context(), dockerSave(t, simpleImage(t)), named("mine"))
	must(t, err)
	i, err := s.Lookup("mine") // its config has been read from image.json
	must(t, err)
	if len(i.Imported.Config.Env) == 0 {
		t.Error("no config")
	}
	checkVerify(t, i, all)
	checkVerify(t, i, quick)
	must(t, os.Remove(filepath.Join(i.Root(), "bin/tool")))
	checkVerify(t, i, quick, Difference{Path: "/bin/tool", Change: tree.Removed, Want: "-rwxr-xr-x"})
}

func TestVerifySnapshot(t *testing.T) {
	s, err := openEmpty(t).Snapshots()
	must(t, err)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	i, err := s.Add(t.Context(), []string{"one"}, func(root string) error {
		file := filepath.Join(root, "a\nb")
		return errors.Join(os.WriteFile(file, []byte("text"), 0o600), os.Chtimes(file, at, at))
	})
	must(t, err)
	info, err := os.Stat(filepath.Join(i.dir, imageList))
	must(t, err)
	if info.Mode() != 0o600 {
		t.Errorf("the mode of the list is %v", info.Mode())
	}
	checkVerify(t, i, all)
	checkVerify(t, i, quick)
	must(t, os.Chmod(filepath.Join(i.Root(), "a\nb"), 0o644))
	checkVerify(t, i, all, Difference{Path: "/a\nb", Change: tree.Mode, Want: "-rw-------", Got: "-rw-r--r--"})
}
