package oci

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"os"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"

	"gaol/rootfs/download"
	"gaol/rootfs/tree"
)

// Write writes an image of one layer, for Linux and Go's name of a processor, to w as a tar archive of an OCI
// layout. pack writes the layer's files as a tar archive. The compressed layer is stored in temp, an empty file,
// because its digest precedes it in w. Equal layers and configs give equal archives.
func Write(w io.Writer, arch string, c Config, temp *os.File, pack func(io.Writer) error) error {
	layer, diffID, err := compress(temp, pack)
	if err != nil {
		return err
	}
	out := &layoutWriter{tar: tar.NewWriter(w)}
	out.document(layoutFile, "", map[string]string{"imageLayoutVersion": "1.0.0"})
	config := out.document("", types.OCIConfigJSON, v1.ConfigFile{
		Created: v1.Time{Time: tree.Epoch}, OS: "linux", Architecture: arch,
		Config: v1.Config{Env: c.Env, WorkingDir: c.WorkingDir, User: c.User, Entrypoint: c.Entrypoint, Cmd: c.Cmd},
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{diffID}},
	})
	manifest := out.document("", types.OCIManifestSchema1, v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: config, Layers: []v1.Descriptor{layer},
	})
	manifest.Platform = &v1.Platform{OS: "linux", Architecture: arch}
	out.document(indexFile, "", v1.IndexManifest{
		SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{manifest},
	})
	out.file(blobPath(layer.Digest), layer.Size, temp)
	if out.err != nil {
		return out.err
	}
	return out.tar.Close()
}

// compress writes a layer's blob to temp, and seeks to its start.
func compress(temp *os.File, pack func(io.Writer) error) (layer v1.Descriptor, diffID v1.Hash, err error) {
	blob, plain := sha256.New(), sha256.New()
	file := bufio.NewWriterSize(io.MultiWriter(temp, blob), 256<<10)
	z := gzip.NewWriter(file) // takes half as long as Go's own, for 3 % more bytes
	if err = pack(io.MultiWriter(z, plain)); err != nil {
		return layer, diffID, err
	}
	err = errors.Join(z.Close(), file.Flush())
	layer.MediaType, layer.Digest = types.OCILayer, hashOf(blob)
	if err == nil {
		layer.Size, err = temp.Seek(0, io.SeekCurrent)
	}
	return layer, hashOf(plain), errors.Join(err, download.Rewind(temp))
}

func hashOf(sum hash.Hash) v1.Hash { return v1.Hash{Algorithm: "sha256", Hex: hexOf(sum)} }

// blobPath returns the path of a blob in a layout.
func blobPath(digest v1.Hash) string { return path.Join("blobs", digest.Algorithm, digest.Hex) }

// layoutWriter writes the files of a layout until the first error.
type layoutWriter struct {
	tar *tar.Writer
	err error
}

// document writes a document as JSON, as a blob if name is empty.
func (l *layoutWriter) document(name string, media types.MediaType, content any) v1.Descriptor {
	text, err := json.Marshal(content)
	l.err = errors.Join(l.err, err)
	sum := sha256.New()
	sum.Write(text)
	d := v1.Descriptor{MediaType: media, Size: int64(len(text)), Digest: hashOf(sum)}
	l.file(cmp.Or(name, blobPath(d.Digest)), d.Size, bytes.NewReader(text))
	return d
}

func (l *layoutWriter) file(name string, size int64, content io.Reader) {
	if l.err == nil {
		l.err = l.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, ModTime: tree.Epoch})
	}
	if l.err == nil {
		_, l.err = io.Copy(l.tar, content)
	}
}
