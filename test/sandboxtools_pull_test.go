package test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"gaol/runtime"
	"gaol/runtime/sandboxtools"
)

// busyboxRegistry serves an image on loopback, and counts who asks for its layers.
func busyboxRegistry(t *testing.T) (reference string, pulls *atomic.Int64) {
	t.Helper()
	image, err := tarball.ImageFromPath(busyboxImage(t), nil)
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

// An image that the host names is pulled when it is first asked for, once.
func TestToolsPullImages(t *testing.T) {
	reference, pulls := busyboxRegistry(t)
	o := ours(runtime.Options{})
	o.Store, o.Image = filepath.Join(t.TempDir(), "store"), ""
	box, err := sandboxtools.New(sandboxtools.Options{Create: o, Images: []string{reference}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			made, err := box.Init(t.Context(), sandboxtools.InitArgs{ImageName: reference})
			if err != nil {
				t.Error(err)
				return
			}
			res, err := box.Command(t.Context(), sandboxtools.CommandArgs{ContainerID: made.ContainerID, Executable: "sh", Args: []string{"-c", "echo $((6 * 7)); pwd"}})
			if err != nil || res.Stdout != "42\n/\n" {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	all.Wait()
	if n := pulls.Load(); n != 1 {
		t.Errorf("its manifest was asked for %d times", n)
	}
	other := strings.Replace(reference, ":1", ":2", 1)
	if made, err := box.Init(t.Context(), sandboxtools.InitArgs{ImageName: other}); sandboxtools.CodeOf(err) != sandboxtools.Permission {
		t.Errorf("one that is not named: %+v, %v", made, err)
	}
	missing, err := sandboxtools.New(sandboxtools.Options{Create: o, Images: []string{other}})
	if err != nil {
		t.Fatal(err)
	}
	if made, err := missing.Init(t.Context(), sandboxtools.InitArgs{ImageName: other}); err == nil {
		t.Errorf("one that is not there: %+v", made)
	}
	if err := missing.Close(); err != nil {
		t.Error(err)
	}
}
