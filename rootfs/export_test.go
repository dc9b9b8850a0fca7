package rootfs

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"golang.org/x/sys/unix"

	"gaol/rootfs/tree"
	"gaol/test/tartest"
)

// exported exports an image.
func exported(t *testing.T, s *Store, ref string) []byte {
	t.Helper()
	var out bytes.Buffer
	must(t, s.Export(t.Context(), ref, &out))
	left, err := os.ReadDir(s.tmp())
	must(t, err)
	if len(left) > 0 {
		t.Errorf("the export left %v", left)
	}
	return out.Bytes()
}

// openExported unpacks the archive of an export, and returns its only image. It checks all digests, sizes and media types.
func openExported(t *testing.T, archive []byte) v1.Image {
	t.Helper()
	dir := t.TempDir()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		text, err := io.ReadAll(r)
		must(t, err)
		file := filepath.Join(dir, h.Name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, text, 0o644))
	}
	version, err := os.ReadFile(filepath.Join(dir, "oci-layout"))
	must(t, err)
	if string(version) != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout: %s", version)
	}
	index, err := layout.ImageIndexFromPath(dir)
	must(t, err)
	must(t, validate.Index(index))
	list, err := index.IndexManifest()
	must(t, err)
	if len(list.Manifests) != 1 || list.MediaType != types.OCIImageIndex || !list.Manifests[0].Platform.Equals(v1.Platform{OS: "linux", Architecture: goruntime.GOARCH}) {
		t.Fatalf("index %+v", list)
	}
	i, err := index.Image(list.Manifests[0].Digest)
	must(t, err)
	must(t, validate.Image(i))
	m, err := i.Manifest()
	must(t, err)
	if m.MediaType != types.OCIManifestSchema1 || m.Config.MediaType != types.OCIConfigJSON || len(m.Layers) != 1 || m.Layers[0].MediaType != types.OCILayer {
		t.Errorf("manifest %+v", m)
	}
	return i
}

// layerEntries returns the entries of an image's layer.
func layerEntries(t *testing.T, i v1.Image) (list []*tar.Header) {
	t.Helper()
	layers, err := i.Layers()
	must(t, err)
	plain, err := layers[0].Uncompressed()
	must(t, err)
	defer plain.Close()
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if err == io.EOF {
			return list
		}
		must(t, err)
		list = append(list, h)
	}
}

func TestExportImported(t *testing.T) {
	long := strings.Repeat("long/", 60)
	entries := []entry{
		file("bin/tool", "2", 0o4755), file("etc/\xff", "not UTF-8", 0o600), file(long+"é", "deep", 0o640),
		file("usr/libexec/gaol/enter", "the image's own", 0o755),
		tartest.Link("link", "/nowhere/"+long), {Header: tar.Header{Typeflag: tar.TypeLink, Name: "same", Linkname: "bin/tool"}},
		{Header: tar.Header{Typeflag: tar.TypeDir, Name: "empty", Mode: 0o700, Uid: 5}},
	}
	config := v1.Config{
		Env: []string{"PATH=/bin:/opt/bin", "A=1"}, WorkingDir: "/app", User: "1000", Entrypoint: []string{"/bin/tool", "<&>"}, Cmd: []string{"b"},
	}
	source := imageOf(t, config, layerOf(t, entries...))
	s := openTiny(t, t.TempDir())
	first, err := s.Import(t.Context(), layoutOf(t, source), named("first"))
	must(t, err)
	archive := exported(t, s, "first")

	i := openExported(t, archive)
	c, err := i.ConfigFile()
	must(t, err)
	if diff := cmp.Diff(config, c.Config); diff != "" || c.OS != "linux" || c.Architecture != goruntime.GOARCH {
		t.Errorf("%s %s, config (-want +got):\n%s", c.OS, c.Architecture, diff)
	}
	modes := map[string]int64{}
	var names []string
	for _, h := range layerEntries(t, i) {
		modes[h.Name] = h.Mode
		names = append(names, strings.ReplaceAll(strings.TrimSuffix(h.Name, "/"), "/", "\x00")) // as a walk sorts
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || !h.ModTime.Equal(tree.Epoch) {
			t.Errorf("%+v", h)
		}
		if strings.HasPrefix(h.Name, "usr/libexec/gaol") {
			t.Errorf("%s is in the export", h.Name)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("the entries are not sorted: %q", names)
	}
	for name, mode := range map[string]int64{"bin/tool": 0o755, "etc/\xff": 0o644, "tmp/": 0o1777, "same": 0o755, "empty/": 0o755} {
		if modes[name] != mode {
			t.Errorf("mode of %q: %o, want %o", name, modes[name], mode)
		}
	}

	other := openTiny(t, t.TempDir())
	saved := filepath.Join(t.TempDir(), "saved.tar")
	must(t, os.WriteFile(saved, archive, 0o600))
	copied, err := other.Import(t.Context(), saved, named("copy"))
	must(t, err)
	if copied.ID != first.ID {
		t.Errorf("the copy has the id %s, the original %s", copied.ID, first.ID)
	}
	if !bytes.Equal(exported(t, other, "copy"), archive) || !bytes.Equal(exported(t, s, first.ID), archive) {
		t.Error("exports of the same image differ")
	}
}

// An image that gaol built is Node for other tools, too.
func TestExportBuilt(t *testing.T) {
	newRegistry(t).servePackages(t)
	s := openTiny(t, t.TempDir())
	built, err := s.Build(t.Context(), BuildOptions{})
	must(t, err)
	archive := exported(t, s, "default")
	c, err := openExported(t, archive).ConfigFile()
	must(t, err)
	if diff := cmp.Diff(v1.Config{WorkingDir: "/workspace", Entrypoint: []string{"node"}}, c.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	saved := filepath.Join(t.TempDir(), "saved.tar")
	must(t, os.WriteFile(saved, archive, 0o600))
	copied, err := s.Import(t.Context(), saved, named("copy"))
	must(t, err)
	changed, err := compareTrees(built, copied)
	must(t, err)
	if changed != "" || copied.Imported.NodePath != nodeBinary {
		t.Errorf("the copy has Node at %q, and differs:\n%s", copied.Imported.NodePath, changed)
	}
}

// compareTrees compares what the stores list of the trees of two images.
func compareTrees(a, b *Image) (string, error) {
	x, failed := os.ReadFile(filepath.Join(a.dir, imageList))
	y, err := os.ReadFile(filepath.Join(b.dir, imageList))
	return cmp.Diff(string(x), string(y)), errors.Join(failed, err)
}

// tinyImage imports an image of one file, which the path names.
func tinyImage(t *testing.T, s *Store) (path string) {
	t.Helper()
	i, err := s.Import(t.Context(), layoutOf(t, imageOf(t, v1.Config{}, layerOf(t, file("bin/tool", "1", 0o755)))), named("tiny"))
	must(t, err)
	return filepath.Join(i.Root(), "bin/tool")
}

// refusal is a writer that fails after some bytes.
type refusal struct{ left int }

var errRefused = errors.New("refused")

func (r *refusal) Write(p []byte) (int, error) {
	if r.left -= len(p); r.left < 0 {
		return 0, errRefused
	}
	return len(p), nil
}

// expiring is canceled after it was asked some times.
type expiring struct {
	context.Context
	left int
}

func (e *expiring) Err() error {
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestExportFails(t *testing.T) {
	s := openTiny(t, t.TempDir())
	tool := tinyImage(t, s)
	fails := func(ctx context.Context, ref string, w io.Writer, want error) {
		t.Helper()
		if err := s.Export(ctx, ref, w); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		left, err := os.ReadDir(s.tmp())
		must(t, err)
		if len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
	fails(t.Context(), "nosuch", io.Discard, ErrNotFound)
	for left := range 10 {
		fails(&expiring{t.Context(), left}, "tiny", io.Discard, context.Canceled)
	}
	size := len(exported(t, s, "tiny"))
	for left := 0; left < size; left += 700 {
		fails(t.Context(), "tiny", &refusal{left}, errRefused)
	}
	must(t, os.Remove(tool))
	must(t, unix.Mkfifo(tool, 0o644))
	fails(t.Context(), "tiny", io.Discard, nil)
}

// An export does not hold files in memory. The files are stored compressed first.
func TestExportMemory(t *testing.T) {
	s := openTiny(t, t.TempDir())
	must(t, os.Truncate(tinyImage(t, s), 256<<20))
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	out := &refusal{8 << 20}
	must(t, s.Export(t.Context(), "tiny", out))
	goruntime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 16<<20 {
		t.Errorf("it allocated %d bytes", taken)
	}
}
