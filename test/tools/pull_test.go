package tools

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"gaol/rootfs"
	"gaol/runtime"
	"gaol/runtime/sandboxtools"
	"gaol/test/harness"
	"gaol/test/tier"
)

// busyboxRegistry serves an image on loopback, and counts the requests for its layers.
func busyboxRegistry(t *testing.T) (reference string, pulls *atomic.Int64) {
	t.Helper()
	image, err := tarball.ImageFromPath(harness.BusyboxImage(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	pulls = new(atomic.Int64)
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") {
			pulls.Add(1)
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	reference = strings.TrimPrefix(server.URL, "http://") + "/tools/busybox:1"
	ref, err := name.ParseReference(reference)
	if err == nil {
		err = remote.Write(ref, image)
	}
	if err != nil {
		t.Fatal(err)
	}
	pulls.Store(0)
	return reference, pulls
}

// An image that the host lists is pulled once, when it is first used.
func TestToolsPullImages(t *testing.T) {
	reference, pulls := busyboxRegistry(t)
	o := harness.Options(runtime.Options{})
	o.Store, o.Image = filepath.Join(t.TempDir(), "store"), ""
	box, err := sandboxtools.New(sandboxtools.Options{Create: o, Images: map[string]string{reference: "docker://" + reference}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	s := tools{t, box}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			made, err := s.try("init", args{"imageName": reference})
			if err != nil {
				t.Error(err)
				return
			}
			res, err := s.try("command", args{"containerId": made["containerId"], "executable": "sh", "args": []string{"-c", "echo $((6 * 7)); pwd"}})
			if err != nil || res["stdout"] != "42\n/workspace\n" {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	all.Wait()
	if n := pulls.Load(); n != 1 {
		t.Errorf("its manifest was asked for %d times", n)
	}
	other := strings.Replace(reference, ":1", ":2", 1)
	s.refused(sandboxtools.Permission, "init", args{"imageName": other})
}

// imageSources are one image in all local forms.
func imageSources(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	archive := harness.BusyboxImage(t)
	image, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	index, err := layout.Write(filepath.Join(dir, "layout"), empty.Index)
	if err == nil {
		err = index.AppendImage(image)
	}
	store, err2 := rootfs.Open(harness.ImportImage(t, archive, rootfs.ImportOptions{}))
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	app, err := store.Lookup("app")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"layout": filepath.Join(dir, "layout"), "archive": archive, "folder": app.Root()}
}

// newPullTools is newTools with a separate store.
func newPullTools(t *testing.T, images map[string]string) (tools, *rootfs.Store) {
	t.Helper()
	dir := t.TempDir()
	store, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	o := harness.Options(runtime.Options{Store: dir})
	o.Image = ""
	box, err := sandboxtools.New(sandboxtools.Options{Create: o, Images: images})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	return tools{t, box}, store
}

// The images in Options.Images are imported from any kind of source when they are first
// used. Others are not even read.
func TestToolsImportImages(t *testing.T) {
	tier.Soak(t)
	sources := imageSources(t)
	reference, _ := busyboxRegistry(t)
	sources["registry"] = "docker://" + reference
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			s, store := newPullTools(t, map[string]string{source: source})
			for range 2 {
				if made := s.call("init", args{"containerId": "a", "imageName": source}); made["imageName"] != source {
					t.Error(made)
				}
				r := s.call("command", args{"containerId": "a", "executable": "/opt/tools/sh", "args": []string{"-c", "echo $((6 * 7))"}})
				if r["stdout"] != "42\n" {
					t.Error(r)
				}
				s.call("destroy", args{"containerId": "a"})
			}
			if all, err := store.List(); err != nil || len(all) != 1 || len(all[0].Names) != 1 {
				t.Errorf("the store has %+v, %v", all, err)
			}
			s.refused(sandboxtools.Permission, "init", args{"imageName": source + "/."})
		})
	}
	for want, list := range map[sandboxtools.Code]map[string]string{sandboxtools.NotFound: nil, sandboxtools.Permission: {"app": sources["layout"]}} {
		s, store := newPullTools(t, list)
		for _, other := range []string{sources["archive"], sources["folder"], sources["layout"], reference, "docker://" + reference, "/", "/etc", "./x", "file:///etc", strings.Repeat("/x", 2000)} {
			s.refused(want, "init", args{"imageName": other})
			if _, err := s.try("init", args{"imageName": other}); !strings.Contains(err.Error(), "list it in Options.Images") || len(err.Error()) > 400 {
				t.Errorf("%s names no cure: %v", other, err)
			}
		}
		if all, err := store.List(); err != nil || len(all) > 0 {
			t.Errorf("%s: the store has %+v, %v", want, all, err)
		}
	}
}

// The error code of a failed import shows whether the caller or the host has to act.
func TestToolsImportFailures(t *testing.T) {
	sources := imageSources(t)
	image, err := tarball.ImageFromPath(sources["archive"], nil)
	if err != nil {
		t.Fatal(err)
	}
	// Corrupt the layer's last byte.
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	blob := filepath.Join(sources["layout"], "blobs", digest.Algorithm, digest.Hex)
	text, err := os.ReadFile(blob)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-1] ^= 1
	if err := os.WriteFile(blob, text, 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Architecture = "s390x"
	foreign := filepath.Join(t.TempDir(), "foreign.tar")
	if image, err = mutate.ConfigFile(image, config); err == nil {
		err = tarball.WriteToFile(foreign, name.MustParseReference("registry.example/busybox:1"), image)
	}
	if err != nil {
		t.Fatal(err)
	}
	reference, _ := busyboxRegistry(t)
	closed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="here"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(closed.Close)
	for source, want := range map[string]sandboxtools.Code{
		sources["layout"]: sandboxtools.BadImage, foreign: sandboxtools.BadImage,
		"docker://" + strings.TrimSuffix(reference, "1") + "2": sandboxtools.NotFound, foreign + "x": sandboxtools.NotFound, "docker://A/B": sandboxtools.NotFound,
		"docker://" + strings.TrimPrefix(closed.URL, "http://") + "/app:1": sandboxtools.Unauthorized,
	} {
		s, store := newPullTools(t, map[string]string{"app": source})
		s.refused(want, "init", args{"imageName": "app"})
		if all, err := store.List(); err != nil || len(all) > 0 {
			t.Errorf("%s: the store has %+v, %v", source, all, err)
		}
	}
}
