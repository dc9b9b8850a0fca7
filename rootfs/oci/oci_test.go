package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"gaol/rootfs/layer"
	"gaol/test/tartest"
)

func on(platform string, d v1.Descriptor) v1.Descriptor {
	p, err := v1.ParsePlatform(platform)
	if err != nil {
		panic(err)
	}
	d.Platform = p
	return d
}

// TestOpen opens layouts with valid and invalid documents.
func TestOpen(t *testing.T) {
	ofLayers := func(n int) func(*v1.ConfigFile, *v1.Manifest) {
		return func(c *v1.ConfigFile, m *v1.Manifest) {
			for len(m.Layers) < n {
				m.Layers = append(m.Layers, m.Layers[0])
				c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, c.RootFS.DiffIDs[0])
			}
		}
	}
	forArch := func(arch string) func(*v1.ConfigFile, *v1.Manifest) {
		return func(c *v1.ConfigFile, _ *v1.Manifest) { c.Architecture = arch }
	}
	nested := func(f files, depth int) v1.Descriptor {
		d := f.image(nil)
		for range depth {
			d = f.put(asJSON(v1.IndexManifest{Manifests: []v1.Descriptor{d}}))
		}
		return d
	}
	for name, tc := range map[string]struct {
		make func(f files) files
		want error
	}{
		"one": {func(f files) files { return f.layout(f.image(nil)) }, nil},
		"by platform": {func(f files) files {
			return f.layout(on("linux/s390x", f.image(forArch("s390x"))), on("linux/"+goruntime.GOARCH, f.image(nil)))
		}, nil},
		"with attestation": {func(f files) files {
			return f.layout(on("linux/"+goruntime.GOARCH, f.image(nil)), on("unknown/unknown", f.put([]byte("{}"))))
		}, nil},
		"with variants": {func(f files) files {
			return f.layout(on("linux/"+goruntime.GOARCH+"/v1", f.image(nil)), on("linux/"+goruntime.GOARCH+"/v2", f.image(forArch("x"))))
		}, nil},
		"nested":     {func(f files) files { return f.layout(nested(f, 2)) }, nil},
		"all layers": {func(f files) files { return f.layout(f.image(ofLayers(maxLayers))) }, nil},

		"other platform":    {func(f files) files { return f.layout(on("linux/s390x", f.image(nil))) }, ErrPlatform},
		"wrongly described": {func(f files) files { return f.layout(on("linux/"+goruntime.GOARCH, f.image(forArch("s390x")))) }, ErrPlatform},
		"no platform":       {func(f files) files { return f.layout(f.image(forArch(""))) }, ErrPlatform},
		"two of none":       {func(f files) files { return f.layout(f.image(nil), f.image(ofLayers(2))) }, ErrMalformed},
		"empty index":       {func(f files) files { return f.layout([]v1.Descriptor{}...) }, ErrPlatform},
		"too deep":          {func(f files) files { return f.layout(nested(f, maxIndexes)) }, ErrMalformed},
		"too many layers":   {func(f files) files { return f.layout(f.image(ofLayers(maxLayers + 1))) }, ErrMalformed},
		"fewer diff ids": {func(f files) files {
			return f.layout(f.image(func(c *v1.ConfigFile, _ *v1.Manifest) { c.RootFS.DiffIDs = nil }))
		}, ErrMalformed},
		"layer elsewhere": {func(f files) files {
			return f.layout(f.image(func(_ *v1.ConfigFile, m *v1.Manifest) { m.Layers[0].URLs = []string{"https://x.example"} }))
		}, ErrMalformed},
		"negative size": {func(f files) files {
			return f.layout(f.image(func(_ *v1.ConfigFile, m *v1.Manifest) { m.Layers[0].Size = -1 }))
		}, ErrMalformed},
		"layer missing": {func(f files) files {
			return f.layout(f.image(func(_ *v1.ConfigFile, m *v1.Manifest) { m.Layers[0].Digest = digest([]byte("no")) }))
		}, ErrMalformed},
		"big config": {func(f files) files {
			return f.layout(f.image(func(c *v1.ConfigFile, _ *v1.Manifest) { c.Config.Env = []string{strings.Repeat("x", maxConfig)} }))
		}, ErrMalformed},
		"manifest and index": {func(f files) files { return f.layout(f.put([]byte(`{"manifests":[],"config":{},"layers":[]}`))) }, ErrMalformed},
		"neither":            {func(f files) files { return f.layout(f.put([]byte(`{"schemaVersion":2}`))) }, ErrMalformed},
		"first schema":       {func(f files) files { return f.layout(f.put([]byte(`{"layers":[],"fsLayers":[{}]}`))) }, ErrMalformed},
		"no JSON":            {func(f files) files { return f.layout(f.put([]byte(`x`))) }, ErrMalformed},
		"odd digest": {func(f files) files {
			f.layout()
			f[indexFile] = []byte(`{"manifests":[{"digest":"sha256:../../x"}]}`)
			return f
		}, ErrMalformed},
		"manifest changed": {func(f files) files {
			d := f.image(nil)
			f["blobs/sha256/"+d.Digest.Hex] = bytes.Repeat([]byte(" "), int(d.Size))
			return f.layout(d)
		}, ErrDigest},
		"manifest of 9 MiB":   {func(f files) files { return f.layout(f.put(bytes.Repeat([]byte(" "), 9<<20))) }, ErrMalformed},
		"docker, two images":  {func(f files) files { f[dockerIndex] = []byte(`[{},{}]`); return f }, ErrMalformed},
		"docker, no config":   {func(f files) files { f[dockerIndex] = []byte(`[{"Config":"/etc/passwd","Layers":[]}]`); return f }, ErrMalformed},
		"docker, other thing": {func(f files) files { f[dockerIndex] = []byte(`{"name":"web app"}`); return f }, ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.make(files{})
			archive := filepath.Join(t.TempDir(), "archive")
			must(t, os.WriteFile(archive, f.pack(), 0o644))
			sources := []string{archive}
			if f[indexFile] != nil {
				sources = append(sources, f.write(t, filepath.Join(t.TempDir(), "folder")))
			}
			for _, source := range sources {
				i, err := Open(t.Context(), source, options(t))
				if err == nil {
					err = readLayers(i)
					i.Close()
				}
				if !errors.Is(err, tc.want) || tc.want == nil && err != nil {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// readLayers reads all layers of a layout.
func readLayers(i *Image) error {
	if i.Kind != "oci-layout" || len(i.Layers) == 0 {
		return fmt.Errorf("image %+v", i)
	}
	for _, l := range i.Layers {
		if err := l.Receive(context.Background(), io.Discard); err != nil {
			return err
		}
		blob, err := l.Open(context.Background())
		if err != nil {
			return err
		}
		a, err := l.Archive(blob)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, a)
		if err := errors.Join(err, a.Close(), blob.Close()); err != nil {
			return err
		}
	}
	return nil
}

// TestLayoutLinks checks that a blob that is a link out of the layout, or not a file, is refused.
func TestLayoutLinks(t *testing.T) {
	f := files{}
	d := f.image(nil)
	dir := f.layout(d).write(t, filepath.Join(t.TempDir(), "folder"))
	blob := filepath.Join(dir, "blobs/sha256", d.Digest.Hex)
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.Rename(blob, outside))
	must(t, os.Symlink(outside, blob))
	if _, err := Open(t.Context(), dir, options(t)); err == nil {
		t.Error("a link out of the layout was followed")
	}
	must(t, os.Remove(blob))
	must(t, os.Mkdir(blob, 0o755))
	if _, err := Open(t.Context(), dir, options(t)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a folder for a blob: %v", err)
	}
}

// TestDockerLinks opens an archive of an old docker save, in which layers are links to others.
func TestDockerLinks(t *testing.T) {
	text := emptyTar()
	id := digest(text)
	config := asJSON(v1.ConfigFile{OS: "linux", Architecture: goruntime.GOARCH, RootFS: v1.RootFS{DiffIDs: []v1.Hash{id, id, id}}})
	file := filepath.Join(t.TempDir(), "saved")
	must(t, os.WriteFile(file, tartest.Pack(
		tartest.File("a/layer.tar", string(text), 0),
		tartest.Link("b/layer.tar", "../a/layer.tar"),
		tartest.Entry{Header: tar.Header{Typeflag: tar.TypeLink, Name: "c/layer.tar", Linkname: "a/layer.tar"}},
		tartest.File("c.json", string(config), 0),
		tartest.File("manifest.json", `[{"Config":"c.json","Layers":["a/layer.tar","b/layer.tar","c/layer.tar"]}]`, 0),
	), 0o644))
	i, err := Open(t.Context(), file, options(t))
	must(t, err)
	for _, l := range i.Layers {
		if l.Size != int64(len(text)) || l.DiffID != id {
			t.Errorf("layer %+v", l)
		}
	}
	i.Close()
}

func TestExpandIsBounded(t *testing.T) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(make([]byte, 2<<20))
	must(t, errors.Join(err, z.Close()))
	file := filepath.Join(t.TempDir(), "bomb")
	must(t, os.WriteFile(file, out.Bytes(), 0o644))
	if _, err := Open(t.Context(), file, options(t)); !errors.Is(err, layer.ErrTooLarge) {
		t.Errorf("error %v", err)
	}
	must(t, os.WriteFile(file, out.Bytes()[:out.Len()/2], 0o644))
	if _, err := Open(t.Context(), file, options(t)); !errors.Is(err, ErrTruncated) {
		t.Errorf("half: %v", err)
	}
}

// TestArchiveVerifies checks the digest of the decompressed archive.
func TestArchiveVerifies(t *testing.T) {
	for _, want := range []v1.Hash{digest([]byte("other")), {Algorithm: "md5", Hex: "00"}} {
		l := Layer{DiffID: want}
		a, err := l.Archive(bytes.NewReader(emptyTar()))
		if err == nil {
			_, err = io.Copy(io.Discard, a)
			err = errors.Join(err, a.Close())
		}
		if !errors.Is(err, ErrDigest) && !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, tc := range []files{files{}.layout(), {dockerIndex: []byte(`[{"Config":"c","Layers":["l"]}]`), "c": []byte("{}")}} {
		f.Add(tc.pack())
	}
	whole := files{}
	f.Add(whole.layout(whole.image(nil)).pack())
	f.Fuzz(func(t *testing.T, archive []byte) {
		file := filepath.Join(t.TempDir(), "archive")
		must(t, os.WriteFile(file, archive, 0o644))
		i, err := Open(t.Context(), file, options(t))
		if err != nil {
			return
		}
		for n := range i.Layers {
			_, compressed, _ := decompress(bytes.NewReader(archive))
			if i.Kind != "oci-layout" && i.Layers[n].Size > int64(len(archive)) && !compressed { // a layout's sizes are not checked yet
				t.Errorf("layer %d is not in the archive", n)
			}
		}
		i.Close()
	})
}
