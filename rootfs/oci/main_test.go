package oci

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"go.uber.org/goleak"

	"gaol/test/tartest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func digest(text []byte) v1.Hash {
	sum := sha256.Sum256(text)
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
}

func asJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// files are the files of a source, by path.
type files map[string][]byte

// put adds a blob to a layout, and returns its descriptor.
func (f files) put(text []byte) v1.Descriptor {
	d := digest(text)
	f["blobs/sha256/"+d.Hex] = text
	return v1.Descriptor{Digest: d, Size: int64(len(text))}
}

// image adds an image, and returns the descriptor of its manifest.
func (f files) image(change func(*v1.ConfigFile, *v1.Manifest)) v1.Descriptor {
	layer := emptyTar()
	c := &v1.ConfigFile{OS: "linux", Architecture: goruntime.GOARCH, RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{digest(layer)}}}
	m := &v1.Manifest{SchemaVersion: 2, Layers: []v1.Descriptor{f.put(layer)}}
	if change != nil {
		change(c, m)
	}
	m.Config = f.put(asJSON(c))
	return f.put(asJSON(m))
}

func emptyTar() []byte { return make([]byte, 1024) }

// layout adds the files of an OCI layout with that index.
func (f files) layout(list ...v1.Descriptor) files {
	f[layoutFile] = []byte(`{"imageLayoutVersion":"1.0.0"}`)
	f[indexFile] = asJSON(v1.IndexManifest{SchemaVersion: 2, Manifests: list})
	return f
}

func (f files) write(t testing.TB, dir string) string {
	t.Helper()
	for name, text := range f {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, text, 0o644))
	}
	return dir
}

func (f files) pack() []byte {
	var entries []tartest.Entry
	for name, text := range f {
		entries = append(entries, tartest.File("./"+name, string(text), 0))
	}
	return tartest.Pack(entries...)
}

// options allow archives of at most 1 MiB.
func options(t testing.TB) Options {
	return Options{
		Temp:    func() (*os.File, error) { return os.CreateTemp(t.TempDir(), "") },
		MaxTemp: 1 << 20,
	}
}
