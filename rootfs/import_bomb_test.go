package rootfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"gaol/test/tartest"
)

const claimed = 40 << 30 // the size in bytes that a bomb claims

// transferred returns how many bytes this process has read and written by system calls.
func transferred(t *testing.T) (total int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	must(t, err)
	var read, written int64
	if _, err := fmt.Sscanf(string(text), "rchar: %d\nwchar: %d\n", &read, &written); err != nil {
		t.Fatal(err)
	}
	return read + written
}

// sparseTar makes a tar archive, and a docker archive with it, whose layer is a hole.
func sparseTar(t *testing.T, entries ...entry) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sparse.tar")
	out := bytes.NewBuffer(tartest.Pack(entries...))
	out.Truncate(out.Len() - 1024) // the end of the archive
	must(t, tar.NewWriter(out).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "layer.tar", Size: claimed}))
	must(t, os.WriteFile(file, out.Bytes(), 0o644))
	must(t, os.Truncate(file, int64(out.Len())+claimed+1024))
	return file
}

// gzipBomb makes the start of a compressed archive of one large file.
func gzipBomb(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "bomb", Size: claimed}))
	_, err := w.Write(make([]byte, 128<<20))
	must(t, errors.Join(err, z.Close()))
	return out.Bytes()
}

// largeBlob makes an OCI layout with a blob that is larger than in its manifest.
func largeBlob(t *testing.T) string {
	t.Helper()
	i := simpleImage(t)
	dir := layoutOf(t, i)
	layers, err := i.Layers()
	must(t, err)
	digest, err := layers[0].Digest()
	must(t, err)
	must(t, os.Truncate(filepath.Join(dir, "blobs/sha256", digest.Hex), claimed))
	return dir
}

// bombHub is a registry with endless blobs.
func bombHub(t *testing.T) string {
	t.Helper()
	h := newHub(t)
	ref := h.push(t, "bomb:1", simpleImage(t))
	config := ""
	h.change = func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if config == "" && strings.Contains(r.URL.Path, "/blobs/") {
				config = r.URL.Path // the first blob of an import
			}
			if !strings.Contains(r.URL.Path, "/blobs/") || r.URL.Path == config {
				inner.ServeHTTP(w, r)
				return
			}
			piece := make([]byte, 1<<20)
			for n := 0; n < claimed; n += len(piece) {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		})
	}
	return ref
}

// TestImportBombs checks that sources that claim to be larger than the limit are refused before
// they are read.
func TestImportBombs(t *testing.T) {
	const most = 32 << 20
	write := func(name string, text []byte) string {
		path := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(path, text, 0o644))
		return path
	}
	bomb := gzipBomb(t)
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "bomb"), nil, 0o644))
	must(t, os.Truncate(filepath.Join(folder, "bomb"), claimed))
	const docker = `[{"Config":"c.json","Layers":["layer.tar"]}]`
	config := `{"os":"linux","architecture":"` + goruntime.GOARCH + `","rootfs":{"diff_ids":["sha256:` + strings.Repeat("0", 64) + `"]}}`
	saved := []entry{file("manifest.json", docker, 0o644), file("c.json", config, 0o644)}
	for name, tc := range map[string]struct {
		source string
		want   error
	}{
		"tar":             {sparseTar(t), ErrTooLarge},
		"compressed tar":  {write("bomb.tar.gz", bomb), ErrTooLarge},
		"docker":          {sparseTar(t, saved...), ErrTooLarge},
		"layer of docker": {write("saved.tar", pack(append(saved, file("layer.tar", string(bomb), 0o644))...)), ErrTooLarge},
		"layout":          {largeBlob(t), ErrDigest},
		"registry":        {bombHub(t), ErrDigest},
		"folder":          {folder, ErrTooLarge},
	} {
		s := openTiny(t, t.TempDir())
		before := transferred(t)
		_, err := s.Import(t.Context(), tc.source, anonymous)
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		if n := transferred(t) - before; n > most {
			t.Errorf("%s: %d bytes were transferred", name, n)
		}
		checkNothing(t, s)
	}
}
