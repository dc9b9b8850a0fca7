package oci

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"gaol/rootfs/download"
)

// Bounds of the documents of an image.
const (
	maxDocument = 8 << 20 // bytes of a manifest, an index or a config; registries take 4 MiB
	maxLayers   = 128     // the maximum of overlayfs, and so of docker build
	maxIndexes  = 4       // nested in each other
	maxArchive  = 100_000 // entries of an archive with an image's parts
)

// Options configure Open.
type Options struct {
	// Platform selects one image of a multi-platform image, such as "linux/amd64". Other
	// images must be for that platform.
	Platform string

	// Keychain finds credentials. Nil: those of the Docker config.
	Keychain authn.Keychain

	// Temp makes a new file for a decompressed archive. Image.Close closes it, and the
	// caller removes it. MaxTemp bounds it in bytes.
	Temp    func() (*os.File, error)
	MaxTemp int64

	// Stall is how long a server may send nothing. Zero: 30 seconds.
	Stall time.Duration
}

// Image is an opened image: layers, or a folder of the host.
type Image struct {
	Kind   string // "registry", "oci-layout", "docker-archive", "tar", "folder"
	Digest string // of its manifest, "" where the source has none
	Config Config // zero for "tar" and "folder"
	Layers []Layer
	Folder string // host path, where Kind is "folder"

	closers []io.Closer
}

// Close closes the connections and files that Open opened.
func (i *Image) Close() error {
	var failed error
	for _, c := range i.closers {
		failed = errors.Join(failed, c.Close())
	}
	i.closers = nil
	return failed
}

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

	// Local is the blob if the source is on this host. Otherwise Fetch downloads it.
	Local *io.SectionReader
	Fetch func(ctx context.Context) (io.ReadCloser, error)
}

// Receive downloads the blob and writes it to w. It fails unless the blob matches Digest
// and Size.
func (l *Layer) Receive(ctx context.Context, w io.Writer) error {
	body, err := l.Fetch(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	return l.copy(ctx, w, body)
}

// Check fails unless r has the content of the blob. It reads at most Size+1 bytes.
func (l *Layer) Check(ctx context.Context, r io.Reader) error {
	if l.Digest.Hex == "" {
		return nil
	}
	return l.copy(ctx, io.Discard, &contextReader{ctx, r})
}

// copy copies the blob from r to w. It fails unless the blob matches Digest and Size.
func (l *Layer) copy(ctx context.Context, w io.Writer, r io.Reader) error {
	sum, err := newHash(l.Digest)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(r, l.Size+1))
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err != nil && isNotContent(err):
		return err
	case n < l.Size:
		return errors.Join(fmt.Errorf("layer %s: %w: %d of %d bytes", l.Digest, ErrTruncated, n, l.Size), err)
	case n > l.Size || hexOf(sum) != l.Digest.Hex:
		return fmt.Errorf("layer %s: %w", l.Digest, ErrDigest)
	}
	return err // of the library, although the digest is right
}

// isNotContent reports whether err comes from the connection or the destination, and not
// from the content that the server sent.
func isNotContent(err error) bool {
	if errors.Is(err, download.ErrStalled) {
		return true
	}
	_, isPath := errors.AsType[*os.PathError](err)
	return isPath
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

// checkDocument checks the digest of a document in memory.
func checkDocument(text []byte, want v1.Hash) error {
	sum, err := newHash(want)
	if err != nil {
		return err
	}
	if sum.Write(text); hexOf(sum) != want.Hex {
		return fmt.Errorf("%s: %w", want, ErrDigest)
	}
	return nil
}

// Archive returns the tar archive in the blob r. The caller reads it to its end and then
// calls Verify, which checks DiffID.
func (l *Layer) Archive(r io.Reader) (*Archive, error) {
	plain, err := decompress(r)
	if err != nil {
		return nil, err
	}
	a := &Archive{r: plain, want: l.DiffID}
	if l.DiffID.Hex != "" {
		if a.sum, err = newHash(l.DiffID); err != nil {
			return nil, errors.Join(err, plain.Close())
		}
	}
	return a, nil
}

// Archive is a layer's tar archive.
type Archive struct {
	r    io.ReadCloser
	sum  hash.Hash
	want v1.Hash
}

// Read implements io.Reader.
func (a *Archive) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if a.sum != nil {
		a.sum.Write(p[:n])
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: %w", ErrTruncated, err)
	}
	return n, err
}

// Verify compares what has been read with the layer's DiffID.
func (a *Archive) Verify() error {
	if a.sum != nil && hexOf(a.sum) != a.want.Hex {
		return fmt.Errorf("layer's archive %s: %w", a.want, ErrDigest)
	}
	return nil
}

// Close closes the decompressor.
func (a *Archive) Close() error { return a.r.Close() }

// parsePlatform reads OS/ARCH or OS/ARCH/VARIANT.
func parsePlatform(text string) (v1.Platform, error) {
	p, err := v1.ParsePlatform(text)
	if err != nil || p.OS == "" || p.Architecture == "" || strings.ContainsAny(text, " \n") {
		return v1.Platform{}, fmt.Errorf("platform %q: want a form like linux/amd64", text)
	}
	return *p, nil
}
