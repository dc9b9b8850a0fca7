package rootfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/zstd"

	"gaol/rootfs/layer"
)

// layoutOf writes an OCI layout with an image for another platform beside i.
func layoutOf(t *testing.T, i v1.Image) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	p, err := layout.Write(dir, empty.Index)
	must(t, err)
	c, err := i.ConfigFile()
	must(t, err)
	other := c.DeepCopy()
	other.Architecture = "s390x"
	foreign, err := mutate.ConfigFile(i, other)
	must(t, err)
	must(t, p.AppendImage(foreign, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: "s390x"})))
	must(t, p.AppendImage(i, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: c.Architecture})))
	return dir
}

func dockerSave(t *testing.T, i v1.Image) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "saved.tar")
	tag, err := name.NewTag("registry.example/app:1")
	must(t, err)
	must(t, tarball.WriteToFile(file, tag, i))
	return file
}

// tarOf packs a folder into a tar archive.
func tarOf(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "packed.tar")
	f, err := os.Create(file)
	must(t, err)
	defer f.Close()
	w := tar.NewWriter(f)
	must(t, w.AddFS(os.DirFS(dir)))
	must(t, w.Close())
	return file
}

// compressed returns a copy of the file, compressed.
func compressed(t *testing.T, file string, by func(io.Writer) io.WriteCloser) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	var out bytes.Buffer
	w := by(&out)
	_, err = w.Write(text)
	must(t, errors.Join(err, w.Close()))
	small := filepath.Join(t.TempDir(), "compressed")
	must(t, os.WriteFile(small, out.Bytes(), 0o644))
	return small
}

func byGzip(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }

func byZstd(w io.Writer) io.WriteCloser {
	z, err := zstd.NewWriter(w)
	if err != nil {
		panic(err)
	}
	return z
}

// TestImportLocal checks that all forms of an image give the same tree.
func TestImportLocal(t *testing.T) {
	i := simpleImage(t)
	plain := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(plain, "bin"), 0o700))
	must(t, os.MkdirAll(filepath.Join(plain, "etc"), 0o700))
	must(t, os.WriteFile(filepath.Join(plain, "bin/tool"), []byte("2"), 0o700))
	must(t, os.WriteFile(filepath.Join(plain, "etc/passwd"), []byte("root"), 0o600))
	lay, save, packed := layoutOf(t, i), dockerSave(t, i), tarOf(t, plain)
	s := openTiny(t, t.TempDir())
	ids := map[bool]string{}
	for _, tc := range []struct {
		source, kind string
		configured   bool
	}{
		{lay, "oci-layout", true},
		{tarOf(t, lay), "oci-layout", true},
		{compressed(t, tarOf(t, lay), byGzip), "oci-layout", true},
		{save, "docker-archive", true},
		{compressed(t, save, byZstd), "docker-archive", true},
		{plain, "folder", false},
		{packed, "tar", false},
		{compressed(t, packed, byGzip), "tar", false},
		{compressed(t, packed, byZstd), "tar", false},
	} {
		image, err := s.Import(t.Context(), tc.source, named("local"))
		must(t, err)
		if ids[tc.configured] == "" {
			ids[tc.configured] = image.ID
			if image.Imported.Kind != tc.kind {
				t.Errorf("%+v", image.Imported)
			}
		}
		if image.ID != ids[tc.configured] {
			t.Errorf("%s %s: id %s, others have %s", tc.kind, tc.source, image.ID, ids[tc.configured])
		}
		checkImported(t, image.Root(), map[string]string{"bin/tool": "2", "etc/passwd": "root"})
	}
	if ids[true] == ids[false] {
		t.Error("the id does not depend on the image's config")
	}
	if left, _ := os.ReadDir(s.tmp()); len(left) != 0 {
		t.Errorf("%d temporary folders are left", len(left))
	}
}

// TestImportLocalFailures is TestImportFailures for files and folders.
func TestImportLocalFailures(t *testing.T) {
	i := simpleImage(t)
	lay, save := layoutOf(t, i), dockerSave(t, i)
	half := filepath.Join(t.TempDir(), "half.tar")
	text, err := os.ReadFile(save)
	must(t, err)
	must(t, os.WriteFile(half, text[:len(text)/2/512*512+100], 0o644))
	layers, err := i.Layers()
	must(t, err)
	digest, err := layers[0].Digest()
	must(t, err)
	size, err := layers[0].Size()
	must(t, err)
	blob := filepath.Join(lay, "blobs/sha256", digest.Hex)
	must(t, os.WriteFile(blob, make([]byte, size), 0o644))
	bomb := compressed(t, zeros(t), byGzip)
	swapped := swapLayers(t, save)
	for name, tc := range map[string]struct {
		source string
		o      ImportOptions
		want   error
	}{
		"digest":     {lay, named("x"), ErrDigest},
		"truncated":  {half, named("x"), ErrTruncated},
		"swapped":    {swapped, named("x"), ErrDigest},
		"bomb":       {bomb, ImportOptions{Limits: layer.Limits{Bytes: 1 << 20}}, ErrTooLarge},
		"nothing":    {"./nothing", named("x"), ErrNoImage},
		"device":     {"/dev/null", named("x"), ErrNoImage},
		"name":       {lay, named("X"), nil},
		"no name":    {"No Such Name", named("x"), ErrNoImage},
		"odd limits": {lay, ImportOptions{Limits: layer.Limits{Bytes: -1}}, nil},
	} {
		s := openTiny(t, t.TempDir())
		_, err := s.Import(t.Context(), tc.source, tc.o)
		if _, typed := errors.AsType[*StepError](err); !typed || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		checkNothing(t, s)
	}
}

// zeros makes a tar archive of a file that compresses well.
func zeros(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "zeros"), make([]byte, 4<<20), 0o644))
	return tarOf(t, dir)
}

// swapLayers changes the order of the layers in an archive of docker save.
func swapLayers(t *testing.T, save string) string {
	t.Helper()
	in, err := os.Open(save)
	must(t, err)
	defer in.Close()
	file := filepath.Join(t.TempDir(), "swapped.tar")
	out, err := os.Create(file)
	must(t, err)
	defer out.Close()
	w := tar.NewWriter(out)
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		text, err := io.ReadAll(r)
		must(t, err)
		if h.Name == "manifest.json" {
			start, rest, _ := strings.Cut(string(text), `"Layers":["`)
			one, rest, _ := strings.Cut(rest, `","`)
			two, rest, _ := strings.Cut(rest, `"`)
			text = []byte(start + `"Layers":["` + two + `","` + one + `"` + rest)
		}
		h.Size = int64(len(text))
		must(t, w.WriteHeader(h))
		_, err = w.Write(text)
		must(t, err)
	}
	must(t, w.Close())
	return file
}
