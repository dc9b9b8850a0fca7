package oci

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"

	"gaol/rootfs/download"
	"gaol/rootfs/layer"
)

// Bounds of the documents of an image.
const (
	MaxDocument = 8 << 20 // bytes of a manifest, an index or a config; registries take 4 MiB
	maxLayers   = 128     // the maximum of overlayfs, and so of docker build
	maxIndexes  = 4       // nested in each other
	maxArchive  = 100_000 // entries of an archive with an image's parts
)

// Options configure Open.
type Options struct {
	// Registry opens images in registries. Nil: only the host's files can be opened.
	Registry Registry

	// Temp makes a new file for a decompressed archive. Image.Close closes it, and the
	// caller removes it. MaxTemp bounds it in bytes.
	Temp    func() (*os.File, error)
	MaxTemp int64

	Stall time.Duration // how long a server may send nothing
}

// Image is an opened image: layers, or a folder of the host.
type Image struct {
	Kind   string // "registry", "oci-layout", "docker-archive", "tar", "folder"
	Digest string // of its manifest, "" where the source has none
	Config Config // zero for "tar" and "folder"
	Layers []Layer
	Folder string // host path, where Kind is "folder"

	close func()
}

// Close closes the connections and files that Open opened.
func (i *Image) Close() { i.close() }

// Config is the image's own description of how to start it. It is not trusted.
type Config struct {
	Env        []string `json:"env,omitempty"`
	WorkingDir string   `json:"workingDir,omitempty"`
	User       string   `json:"user,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
}

// Layer is one layer of an image. Layers are ordered from the lowest to the highest.
type Layer struct {
	Digest v1.Hash // of the blob; zero if the source has none
	DiffID v1.Hash // of the decompressed archive; zero if the source has none
	Size   int64   // bytes of the blob

	// Open opens the blob, from its start. Its content is not checked.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// inFile returns an Open for a blob in an open file of this host. It is read twice: to check
// its digest before anything is unpacked, and to unpack it.
func inFile(r *io.SectionReader) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(r, 0, r.Size())), nil
	}
}

// Receive opens the blob and copies it to w. It fails unless the blob matches Digest and
// Size.
func (l *Layer) Receive(ctx context.Context, w io.Writer) error {
	body, err := l.Open(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	sum, err := newHash(l.Digest)
	if err != nil {
		return err
	}
	in := layer.NewReader(ctx, body, math.MaxInt64) // ends with ctx
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(in, l.Size+1))
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err != nil && isNotContent(err):
		return err
	case n < l.Size:
		return errors.Join(fmt.Errorf("blob %s: %w: %d of %d bytes", l.Digest, ErrTruncated, n, l.Size), err)
	case n > l.Size || hexOf(sum) != l.Digest.Hex:
		return fmt.Errorf("blob %s: %w", l.Digest, ErrDigest)
	}
	return err // of the library, although the digest is right
}

// isNotContent reports whether err comes from the connection or the destination, and not
// from the content that the server sent.
func isNotContent(err error) bool {
	_, isPath := errors.AsType[*os.PathError](err)
	return isPath || errors.Is(err, download.ErrStalled)
}

// newHash returns the hash function of a digest.
func newHash(digest v1.Hash) (hash.Hash, error) {
	sum, err := v1.Hasher(digest.Algorithm)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return sum, err
}

func hexOf(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }

// Archive returns the tar archive in the blob r. Reading it to its end fails unless it
// matches DiffID.
func (l *Layer) Archive(r io.Reader) (io.ReadCloser, error) {
	plain, _, err := decompress(r)
	if err != nil || l.DiffID.Hex == "" {
		return plain, err
	}
	return Verified(plain, l.DiffID)
}

type verifiedReader struct {
	io.ReadCloser
	sum  hash.Hash
	want v1.Hash
}

// Verified returns a reader of r that fails at its end unless want is the digest of the content.
func Verified(r io.ReadCloser, want v1.Hash) (io.ReadCloser, error) {
	sum, err := newHash(want)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return &verifiedReader{r, sum, want}, nil
}

func (r *verifiedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.sum.Write(p[:n])
	if err == io.EOF && hexOf(r.sum) != r.want.Hex {
		err = fmt.Errorf("%s: %w", r.want, ErrDigest)
	}
	return n, err
}

// Errors of Open and of reading a layer, to be matched with errors.Is.
var (
	// ErrDigest is the error for content that does not match its digest.
	ErrDigest = errors.New("content does not match its digest")

	// ErrTruncated is the error for content that ends too early.
	ErrTruncated = errors.New("content ends too early")

	// ErrPlatform is the error for an image that does not support the wanted platform.
	ErrPlatform = errors.New("no image for this platform")

	// ErrUnauthorized is the error of a registry that wants credentials, or other ones.
	ErrUnauthorized = errors.New("not authorized")

	// ErrNoImage is the error for a registry, file or folder that does not have the image.
	ErrNoImage = errors.New("no such image there")

	// ErrMalformed is the error for an image with invalid or contradictory parts.
	ErrMalformed = errors.New("malformed image")

	// ErrInsecure is the error for a registry that needs plain http.
	ErrInsecure = errors.New("plain http is for the loopback interface only")
)

// maxWindow bounds the memory that a zstd frame may ask for. It is the default limit of the
// zstd tool.
const maxWindow = 128 << 20

// decompress detects the compression from the first bytes of r, because media types and
// file names are often wrong.
func decompress(r io.Reader) (plain io.ReadCloser, compressed bool, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	start, err := in.Peek(4)
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		plain, err = gzip.NewReader(in)
		return plain, true, err
	case bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, false, err
		}
		return d.IOReadCloser(), true, nil
	}
	return io.NopCloser(in), false, nil
}
