package rootfs

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

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
	"gaol/rootfs/layer"
)

// layerOf makes an image's layer of entries.
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
	change func(http.Handler) http.Handler // of all it serves, set after it has been filled
	blobs  []string                        // those that were asked for
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

// anonymous keeps the credentials of who runs the tests out of them.
var anonymous = ImportOptions{Keychain: authn.NewMultiKeychain()}

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
	if i.Node != "" || i.Imported.Kind != "registry" || i.Imported.Source != ref || len(i.Imported.Blobs) != 2 || !strings.HasPrefix(i.Imported.Digest, "sha256:") {
		t.Errorf("image %+v %+v", i, i.Imported)
	}
	if i.Path() != "/bin:/opt/bin" || i.Imported.Config.User != "1000" || i.Imported.Config.WorkingDir != "/app" {
		t.Errorf("config %+v", i.Imported.Config)
	}
	checkImported(t, i.Root(), map[string]string{"bin/tool": "2"})
	for _, want := range []string{"fetch layer 1/2", "unpack layer 2/2", "no Node", "stored sha256:"} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("progress lacks %q:\n%s", want, &progress)
		}
	}
	found, err := s.Lookup("mine")
	must(t, err)
	if diff := cmp.Diff(i, found, cmp.AllowUnexported(Image{})); diff != "" {
		t.Errorf("(-imported +found):\n%s", diff)
	}
	if left, _ := os.ReadDir(s.tmp()); len(left) != 0 {
		t.Errorf("%d temporary folders are left", len(left))
	}
	again, err := s.Import(t.Context(), "docker://"+ref, anonymous)
	must(t, err)
	if again.ID != i.ID || !again.Created.Equal(i.Created) {
		t.Errorf("imported %+v, then %+v", i, again)
	}
}

// checkImported looks at what every imported image has, and at some files of its own.
func checkImported(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, want := range map[string]string{
		enter.Path[1:]: "-rwx--x--x", enter.Reaper[1:]: "-rwxr-xr-x", "usr/libexec/gaol/zygote.so": "-rw-r--r--",
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
		if err == nil && (info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 || !info.ModTime().Equal(epoch)) {
			t.Errorf("%s: %s, %s", path, info.Mode(), info.ModTime())
		}
		return err
	}))
}

// TestImportFailures: each failure has its error, and leaves nothing.
func TestImportFailures(t *testing.T) {
	layers := func(change func(w http.ResponseWriter, r *http.Request, blob []byte)) func(http.Handler) http.Handler {
		return func(inner http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.URL.Path, "/blobs/") {
					inner.ServeHTTP(w, r)
					return
				}
				rec := httptest.NewRecorder()
				inner.ServeHTTP(rec, r)
				change(w, r, rec.Body.Bytes())
			})
		}
	}
	answer := func(status int) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) })
		}
	}
	foreign := func(t *testing.T) v1.Image {
		i := simpleImage(t)
		c, err := i.ConfigFile()
		must(t, err)
		c = c.DeepCopy()
		c.Architecture = "s390x"
		i, err = mutate.ConfigFile(i, c)
		must(t, err)
		return i
	}
	zeros := file("zeros", strings.Repeat("\x00", 4<<20), 0o644) // some 4 KiB as it comes
	for name, tc := range map[string]struct {
		image  func(*testing.T) v1.Image
		change func(http.Handler) http.Handler
		ref    string
		limits layer.Limits
		want   error
	}{
		"digest": {want: ErrDigest, change: layers(func(w http.ResponseWriter, r *http.Request, blob []byte) {
			blob = bytes.Clone(blob)
			blob[len(blob)-1] ^= 1
			_, _ = w.Write(blob)
		})},
		"truncated": {want: ErrTruncated, change: layers(func(w http.ResponseWriter, r *http.Request, blob []byte) {
			if !bytes.HasPrefix(blob, []byte{0x1f, 0x8b}) { // the config
				_, _ = w.Write(blob)
				return
			}
			_, _ = w.Write(blob[:len(blob)/2])
		})},
		"cut off": {want: ErrTruncated, change: layers(func(w http.ResponseWriter, r *http.Request, blob []byte) {
			if !bytes.HasPrefix(blob, []byte{0x1f, 0x8b}) {
				_, _ = w.Write(blob)
				return
			}
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write(blob[:len(blob)/2])
		})},
		"endless": {want: ErrDigest, change: layers(func(w http.ResponseWriter, r *http.Request, blob []byte) {
			for range 1000 {
				_, _ = w.Write(append(blob, make([]byte, 1<<10)...))
			}
		})},
		"platform":     {want: ErrPlatform, image: foreign},
		"not found":    {want: ErrNoImage, ref: "other:1"},
		"unauthorized": {want: ErrUnauthorized, change: answer(http.StatusUnauthorized)},
		"forbidden":    {want: ErrUnauthorized, change: answer(http.StatusForbidden)},
		"malformed": {want: ErrMalformed, change: func(inner http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(`{"manifests":[],"layers":[]}`)) })
		}},
		"huge manifest": {want: ErrMalformed, change: func(inner http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/manifests/") {
					_, _ = w.Write(bytes.Repeat([]byte(" "), 9<<20))
				}
			})
		}},
		"sent to plain http": {want: ErrInsecure, change: func(inner http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/manifests/") {
					http.Redirect(w, r, "http://registry.example/v2/x", http.StatusFound)
				}
			})
		}},
		"zip bomb":     {want: ErrTooLarge, limits: layer.Limits{Bytes: 1 << 20}, image: func(t *testing.T) v1.Image { return imageOf(t, v1.Config{}, layerOf(t, zeros)) }},
		"many entries": {want: ErrTooLarge, limits: layer.Limits{Entries: 2}},
		"hostile": {want: ErrRefused, image: func(t *testing.T) v1.Image {
			return imageOf(t, v1.Config{}, layerOf(t, file("../../../../escaped", "", 0o644)))
		}},
		"entry program behind a link": {want: ErrRefused, image: func(t *testing.T) v1.Image {
			return imageOf(t, v1.Config{}, layerOf(t, entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: "usr", Linkname: "/tmp"}}))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := newHub(t), openTiny(t, t.TempDir())
			if tc.image == nil {
				tc.image = func(t *testing.T) v1.Image { return simpleImage(t) }
			}
			ref := h.push(t, "app:1", tc.image(t))
			if tc.ref != "" {
				ref = h.host + "/" + tc.ref
			}
			h.change = tc.change
			o := named("x")
			o.Limits = tc.limits
			_, err := s.Import(t.Context(), ref, o)
			if _, typed := errors.AsType[*ImportError](err); !typed || !errors.Is(err, tc.want) {
				t.Errorf("error %v", err)
			}
			checkNothing(t, s)
		})
	}
}

// checkNothing fails if a failed import has left something.
func checkNothing(t *testing.T, s *Store) {
	t.Helper()
	checkEmpty(t, s)
	if left, _ := os.ReadDir(s.blobs()); len(left) != 0 {
		t.Errorf("%d blobs are left", len(left))
	}
}

// TestImportCanceled: a server that does not go on is left, at the caller's word or
// after a while.
func TestImportCanceled(t *testing.T) {
	h, s := newHub(t), openTiny(t, t.TempDir())
	ref := h.push(t, "app:1", simpleImage(t))
	asked, done := make(chan struct{}, 100), make(chan struct{})
	h.change = func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.URL.Path, "/blobs/") {
				inner.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("{"))
			w.(http.Flusher).Flush()
			asked <- struct{}{}
			select {
			case <-r.Context().Done():
			case <-done:
			}
		})
	}
	defer close(done)
	why := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(why)
	}()
	if _, err := s.Import(ctx, ref, anonymous); !errors.Is(err, why) {
		t.Errorf("canceled: %v", err)
	}
	s.in.stall = 50 * time.Millisecond
	if _, err := s.Import(t.Context(), ref, anonymous); err == nil || errors.Is(err, why) {
		t.Errorf("stalled: %v", err)
	}
	checkNothing(t, s)
}

// TestImportShares: a blob is fetched once, serves two images, and goes with the last.
func TestImportShares(t *testing.T) {
	h, s := newHub(t), openTiny(t, t.TempDir())
	base := layerOf(t, file("base", strings.Repeat("b", 1000), 0o644))
	one := h.push(t, "one", imageOf(t, v1.Config{}, base, layerOf(t, file("one", "", 0o644))))
	two := h.push(t, "two", imageOf(t, v1.Config{}, base, layerOf(t, file("two", "", 0o644)), base))
	digest, err := base.Digest()
	must(t, err)
	kept := filepath.Join(s.blobs(), "sha256-"+digest.Hex)
	for n, ref := range []string{one, two} {
		_, err := s.Import(t.Context(), ref, named([]string{"one", "two"}[n]))
		must(t, err)
	}
	fetched := 0
	for _, b := range h.blobs {
		if b == digest.String() {
			fetched++
		}
	}
	if fetched != 1 {
		t.Errorf("the shared layer was fetched %d times", fetched)
	}
	if blobs, _ := os.ReadDir(s.blobs()); len(blobs) != 3 {
		t.Errorf("%d blobs", len(blobs))
	}
	must(t, s.Remove("one"))
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the shared layer went with the first image: %v", err)
	}
	must(t, os.WriteFile(kept, []byte("spoilt"), 0o644))
	_, err = s.Import(t.Context(), one, named("one"))
	must(t, err) // it was fetched anew
	must(t, s.Remove("one"))
	must(t, s.Remove("two"))
	checkNothing(t, s)
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
	must(t, s.Remove("same"))
	checkNothing(t, s)
}

const importVar = "GAOL_ROOTFS_TEST_IMPORT"

// TestImportKilled: what a killed import had fetched is gone with the next one.
func TestImportKilled(t *testing.T) {
	h, s := newHub(t), openTiny(t, t.TempDir())
	ref := h.push(t, "app:1", simpleImage(t))
	second, resume := make(chan struct{}, 10), make(chan struct{})
	blobs := 0
	h.change = func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				if blobs++; blobs == 3 { // config, the first layer, the second
					second <- struct{}{}
					select {
					case <-r.Context().Done():
					case <-resume:
					}
					return
				}
			}
			inner.ServeHTTP(w, r)
		})
	}
	defer close(resume)
	child := exec.Command("/proc/self/exe")
	child.Env = append(os.Environ(), childVar+"="+s.dir, importVar+"="+ref, "GAOL_ROOTFS_TEST_HOST="+filepath.Dir(s.in.certs))
	must(t, child.Start())
	<-second
	must(t, child.Process.Kill())
	_ = child.Wait()
	if left, _ := os.ReadDir(s.tmp()); len(left) != 1 {
		t.Fatalf("the child was killed too early or too late: %d temporary folders", len(left))
	}
	w, err := s.scratch(t.Context())
	must(t, err)
	must(t, w.Close())
	checkNothing(t, s)
}

// TestImportCredentials: they come from the usual Docker config, or from a keychain.
func TestImportCredentials(t *testing.T) {
	h, s := newHub(t), openTiny(t, t.TempDir())
	ref := h.push(t, "app:1", simpleImage(t))
	h.change = func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, word, _ := r.BasicAuth(); user != "me" || word != "secret" {
				w.Header().Set("WWW-Authenticate", `Basic realm="hub"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			inner.ServeHTTP(w, r)
		})
	}
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("HOME", dir)
	if _, err := s.Import(t.Context(), ref, ImportOptions{}); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("without credentials: %v", err)
	}
	write := func(auth string) {
		must(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"auths":{"`+h.host+`":{"auth":"`+auth+`"}}}`), 0o600))
	}
	write("bWU6d3Jvbmc=") // me:wrong
	_, err := s.Import(t.Context(), ref, ImportOptions{})
	if !errors.Is(err, ErrUnauthorized) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("with wrong credentials: %v", err)
	}
	checkNothing(t, s)
	write("bWU6c2VjcmV0") // me:secret
	_, err = s.Import(t.Context(), ref, ImportOptions{})
	must(t, err)
}
