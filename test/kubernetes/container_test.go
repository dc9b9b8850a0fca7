package kubernetes

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestContainer: the archive is valid, contains what its objects use, and depends on nothing but the files.
func TestContainer(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	programs := map[string]string{"gaol-server": "server", "runc": "runtime", "nats-server": "engine"}
	files := map[string]string{"store/images/0a/rootfs/usr/bin/busybox": "shell", "store/images/0a/files": "list", "store/images/0b/files": "other"}
	maps.Copy(files, programs)
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(store, "names"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, image := range map[string]string{"default": "0a", "node-24": "0a", "other": "0b"} {
		if err := os.Symlink("../images/"+image, filepath.Join(store, "names", name)); err != nil {
			t.Fatal(err)
		}
	}
	var archives [2][]byte
	for i := range archives {
		out := filepath.Join(dir, fmt.Sprint(i))
		if text, err := exec.Command("../../.ci/container", filepath.Join(dir, "gaol"), "v1", store, out).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		var err error
		if archives[i], err = os.ReadFile(out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the second archive is another one")
	}
	unpacked := t.TempDir()
	if out, err := exec.Command("tar", "-xf", filepath.Join(dir, "0"), "-C", unpacked).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	index, err := layout.ImageIndexFromPath(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil || !slices.Equal(config.Config.Entrypoint, []string{"/usr/bin/gaol"}) || config.OS != "linux" || config.Architecture == "" {
		t.Errorf("%v, config %+v", err, config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%v, %d layers", err, len(layers))
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	want := map[string]string{
		"./etc/passwd": "root:x:0:0::/:\n", "./etc/group": "root:x:0:\n", "./usr/bin/busybox": "shell",
		"./usr/lib/gaol/store/images/0a/rootfs/usr/bin/busybox": "shell", "./usr/lib/gaol/store/images/0a/files": "list",
		"./usr/lib/gaol/store/names/default": "../images/0a", "./usr/lib/gaol/store/names/node-24": "../images/0a",
	}
	for name, text := range programs {
		want["./usr/bin/"+strings.Replace(name, "gaol-server", "gaol", 1)] = text
	}
	format, err := os.ReadFile("/sbin/mke2fs")
	if err != nil {
		t.Fatal(err)
	}
	want["./sbin/mke2fs"] = string(format)
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Typeflag == tar.TypeReg && h.Mode&0o022 != 0 || h.ModTime.Unix() != 499162500 {
			t.Errorf("%s: owner %d:%d, mode %o, time %v", h.Name, h.Uid, h.Gid, h.Mode, h.ModTime)
		}
		if h.Typeflag == tar.TypeDir || strings.HasPrefix(h.Name, "./lib") { // of mke2fs
			continue
		}
		text, err := io.ReadAll(r)
		text = append(text, h.Linkname...)
		if err != nil || string(text) != want[h.Name] {
			t.Errorf("%s: %q, %v, want %q", h.Name, text, err, want[h.Name])
		}
		delete(want, h.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}
