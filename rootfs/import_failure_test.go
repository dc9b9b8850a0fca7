package rootfs

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"gaol/rootfs/layer"
	registryclient "gaol/rootfs/registry"
	"gaol/test/tartest"
)

// TestImportFailures checks that each failure returns the right error, and leaves nothing behind.
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
	zeros := file("zeros", strings.Repeat("\x00", 4<<20), 0o644) // about 4 KiB when compressed
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
		"manifest's digest": {want: ErrDigest, ref: "@", change: func(inner http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.URL.Path, "/manifests/") {
					inner.ServeHTTP(w, r)
					return
				}
				rec := httptest.NewRecorder()
				inner.ServeHTTP(rec, r)
				w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
				_, _ = w.Write(append(rec.Body.Bytes(), ' ')) // still the same JSON
			})
		}},
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
			return imageOf(t, v1.Config{}, layerOf(t, tartest.Link("usr", "/tmp")))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := newHub(t), openTiny(t, t.TempDir())
			if tc.image == nil {
				tc.image = func(t *testing.T) v1.Image { return simpleImage(t) }
			}
			i := tc.image(t)
			ref := h.push(t, "app:1", i)
			switch tc.ref {
			case "":
			case "@":
				ref = byDigest(t, h, i)
			default:
				ref = h.host + "/" + tc.ref
			}
			h.change = tc.change
			o := named("x")
			o.Limits = tc.limits
			_, err := s.Import(t.Context(), ref, o)
			if _, typed := errors.AsType[*StepError](err); !typed || !errors.Is(err, tc.want) {
				t.Errorf("error %v", err)
			}
			checkNothing(t, s)
		})
	}
}

// byDigest names an image that has been pushed as "app".
func byDigest(t *testing.T, h *hub, i v1.Image) string {
	t.Helper()
	digest, err := i.Digest()
	must(t, err)
	return h.host + "/app@" + digest.String()
}

// checkNothing fails if a failed import has left files.
func checkNothing(t *testing.T, s *Store) {
	t.Helper()
	checkEmpty(t, s)
}

// TestImportCanceled checks that an import from a stalled server stops when it is canceled, and
// after a timeout.
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

const importVar = "GAOL_ROOTFS_TEST_IMPORT"

// TestImportKilled checks that the next write to the store removes the files of a killed import.
func TestImportKilled(t *testing.T) {
	h, s := newHub(t), openTiny(t, t.TempDir())
	ref := h.push(t, "app:1", simpleImage(t))
	second, resume := make(chan struct{}, 10), make(chan struct{})
	var blobs atomic.Int32
	h.change = func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				if blobs.Add(1) == 3 { // config, the first layer, the second
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
	child.Env = append(os.Environ(), childVar+"="+s.dir, importVar+"="+ref, "GAOL_ROOTFS_TEST_HOST="+filepath.Dir(s.in.certs), programsVar+"="+programsDir(t))
	must(t, child.Start())
	<-second
	must(t, child.Process.Kill())
	_ = child.Wait()
	if left, _ := os.ReadDir(s.tmp()); len(left) != 1 {
		t.Fatalf("the child was killed too early or too late: %d temporary folders", len(left))
	}
	w, err := s.makeTemp(t.Context())
	must(t, err)
	must(t, w.Close())
	checkNothing(t, s)
}

// TestImportCredentials checks that credentials come from the Docker config or from a keychain.
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
	if _, err := s.Import(t.Context(), ref, ImportOptions{Registry: registryclient.Client{}}); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("without credentials: %v", err)
	}
	write := func(auth string) {
		must(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"auths":{"`+h.host+`":{"auth":"`+auth+`"}}}`), 0o600))
	}
	write("bWU6d3Jvbmc=") // me:wrong
	_, err := s.Import(t.Context(), ref, ImportOptions{Registry: registryclient.Client{}})
	if !errors.Is(err, ErrUnauthorized) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("with wrong credentials: %v", err)
	}
	checkNothing(t, s)
	write("bWU6c2VjcmV0") // me:secret
	_, err = s.Import(t.Context(), ref, ImportOptions{Registry: registryclient.Client{}})
	must(t, err)
}
