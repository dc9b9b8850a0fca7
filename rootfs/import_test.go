package rootfs

import (
	"bytes"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	ociregistry "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"gaol/jail/enter"
	"gaol/jail/hostcommand"
	registryclient "gaol/rootfs/registry"
	"gaol/rootfs/tree"
)

// layerOf makes a layer from entries.
func layerOf(t testing.TB, entries ...entry) v1.Layer {
	t.Helper()
	blob := pack(entries...)
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(blob)), nil })
	must(t, err)
	return l
}

// imageOf makes an image for this machine.
func imageOf(t testing.TB, config v1.Config, layers ...v1.Layer) v1.Image {
	t.Helper()
	i, err := mutate.AppendLayers(empty.Image, layers...)
	must(t, err)
	file, err := i.ConfigFile()
	must(t, err)
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", goruntime.GOARCH, config
	i, err = mutate.ConfigFile(i, file)
	must(t, err)
	return i
}

func simpleImage(t testing.TB) v1.Image {
	t.Helper()
	return imageOf(t, v1.Config{Env: []string{"PATH=/bin:/opt/bin", "A=1"}, WorkingDir: "/app", User: "1000"},
		layerOf(t, file("bin/tool", "1", 0o755), file("etc/passwd", "root", 0o600), file("gone", "", 0o644)),
		layerOf(t, file("bin/tool", "2", 0o4755), file(".wh.gone", "", 0o644)))
}

// hub is a registry on the loopback interface.
type hub struct {
	host   string
	change func(http.Handler) http.Handler // wraps the handler of all requests; set after the images are pushed
	blobs  []string                        // digests of the requested blobs
	mu     sync.Mutex
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{}
	inner := ociregistry.New(ociregistry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			h.mu.Lock()
			h.blobs = append(h.blobs, filepath.Base(r.URL.Path))
			h.mu.Unlock()
		}
		if h.change != nil {
			h.change(inner).ServeHTTP(w, r)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	h.host = strings.TrimPrefix(server.URL, "http://")
	return h
}

// push puts an image into the registry, and returns its name there.
func (h *hub) push(t *testing.T, repo string, i v1.Image) string {
	t.Helper()
	ref, err := name.ParseReference(h.host + "/" + repo)
	must(t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	must(t, remote.Write(ref, i, remote.WithTransport(transport)))
	return ref.Name()
}

// anonymous does not use the credentials of the user who runs the tests.
var anonymous = ImportOptions{Registry: registryclient.Client{Keychain: authn.NewMultiKeychain()}}

func named(n string) ImportOptions {
	o := anonymous
	o.Name = n
	return o
}

func TestImportFromRegistry(t *testing.T) {
	h, s := newHub(t), openTiny(t, t.TempDir())
	ref := h.push(t, "app:1", simpleImage(t))
	var progress bytes.Buffer
	o := named("mine")
	o.Progress = &progress
	i, err := s.Import(t.Context(), ref, o)
	must(t, err)
	if i.Node != "" || i.Imported.Kind != "registry" || i.Imported.Source != ref || !strings.HasPrefix(i.Imported.Digest, "sha256:") {
		t.Errorf("image %+v %+v", i, i.Imported)
	}
	if i.Path() != "/bin:/opt/bin" || i.Imported.Config.User != "1000" || i.Imported.Config.WorkingDir != "/app" {
		t.Errorf("config %+v", i.Imported.Config)
	}
	checkImported(t, i.Root(), map[string]string{"bin/tool": "2"})
	for _, want := range []string{"fetch layer 1/2", "unpack layer 2/2", "lacks Node", "stored sha256:"} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("progress lacks %q:\n%s", want, &progress)
		}
	}
	found, err := s.Lookup("mine")
	must(t, err)
	if diff := cmp.Diff(i, found, allFields); diff != "" {
		t.Errorf("(-imported +found):\n%s", diff)
	}
	if left, _ := os.ReadDir(s.tmp()); len(left) != 0 {
		t.Errorf("%d temporary folders are left", len(left))
	}
	for _, same := range []string{"docker://" + ref, byDigest(t, h, simpleImage(t))} {
		again, err := s.Import(t.Context(), same, anonymous)
		must(t, err)
		if again.ID != i.ID || !again.Created.Equal(i.Created) {
			t.Errorf("imported %+v, then %s %+v", i, same, again)
		}
	}
}

// checkImported checks the files that every imported image has, and the given ones.
func checkImported(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, want := range map[string]string{
		enter.Path[1:]: "-rwx--x--x", enter.Reaper[1:]: "-rwxr-xr-x", hostcommand.Path[1:]: "-rwxr-xr-x", "usr/libexec/gaol/zygote.so": "-rw-r--r--",
		"proc": "drwxr-xr-x", "dev": "drwxr-xr-x", "tmp": "dtrwxrwxrwx", "workspace": "drwxr-xr-x", "home/node": "drwxr-xr-x",
		"gone": "none",
	} {
		if got := describe(filepath.Join(root, name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || string(got) != want {
			t.Errorf("%s has %.40q, %v", name, got, err)
		}
	}
	must(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && (info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 || !info.ModTime().Equal(tree.Epoch)) {
			t.Errorf("%s: %s, %s", path, info.Mode(), info.ModTime())
		}
		return err
	}))
}

func TestImportsRace(t *testing.T) {
	h, s := newHub(t), openTiny(t, t.TempDir())
	ref := h.push(t, "app:1", simpleImage(t))
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if _, err := s.Import(t.Context(), ref, named("same")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if images, err := s.List(); err != nil || len(images) != 1 {
		t.Errorf("images %v, %v", images, err)
	}
	remove(t, s, "same")
	checkNothing(t, s)
}
