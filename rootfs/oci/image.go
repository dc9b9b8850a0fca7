package oci

import (
	"bytes"
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
)

// Bounds of what describes an image.
const (
	maxDocument = 8 << 20 // bytes of a manifest, an index or a config; registries take 4 MiB
	maxLayers   = 128     // overlayfs and so docker build take no more
	maxIndexes  = 4       // an index in an index
	maxArchive  = 100_000 // entries of an archive that holds an image's parts
)

// Options say what to open.
type Options struct {
	// Platform is what an image of several is chosen by, such as "linux/amd64", and
	// what the others must be for.
	Platform string

	// Keychain finds credentials. Nil: the usual Docker config.
	Keychain authn.Keychain

	// Temp makes a new file for the decompressed form of an archive. It's the caller's
	// to remove; Image.Close closes it. MaxTemp bounds it in bytes.
	Temp    func() (*os.File, error)
	MaxTemp int64

	// Stall is how long a server may say nothing. Zero: 30 seconds.
	Stall time.Duration
}

// Image is what makes an image's tree: a folder of the host, or layers.
type Image struct {
	Kind   string // "registry", "oci-layout", "docker-archive", "tar", "folder"
	Digest string // of its manifest, "" where the source has none
	Config Config // zero for "tar" and "folder"
	Layers []Layer
	Folder string // host path, where Kind is "folder"

	closers []io.Closer
}

// Close ends what Open began: connections and open files.
func (i *Image) Close() error {
	var failed error
	for _, c := range i.closers {
		failed = errors.Join(failed, c.Close())
	}
	i.closers = nil
	return failed
}

// Config is what an image would have of who starts it. It is not to be trusted.
type Config struct {
	Env        []string `json:"env,omitempty"`
	WorkingDir string   `json:"workingDir,omitempty"`
	User       string   `json:"user,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
}

// Layer is one layer of an image, the lowest first.
type Layer struct {
	Digest v1.Hash // of the blob as it comes; zero where the source has none
	DiffID v1.Hash // of the archive in it; zero where the source has none
	Size   int64   // bytes of the blob

	// Local is the blob, where the source is of this host. Otherwise Fetch gets it.
	Local *io.SectionReader
	Fetch func(ctx context.Context) (io.ReadCloser, error)
}

// Receive gets the blob from its registry and writes it to w. Without an error, it
// is what Digest and Size say.
func (l *Layer) Receive(ctx context.Context, w io.Writer) error {
	body, err := l.Fetch(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	sum, err := v1.Hasher(l.Digest.Algorithm)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(body, l.Size+1))
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
	// What the library has to say of a digest we have found right ourselves.
	return err
}

// isNotContent tells an error of the way, or of the place that the bytes go to, from
// one that may be due to what the server has sent.
func isNotContent(err error) bool {
	if errors.Is(err, errStalled) {
		return true
	}
	_, isPath := errors.AsType[*os.PathError](err)
	return isPath
}

func hexOf(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }

// Check reports whether r holds the blob. It reads at most one byte more than Size.
func (l *Layer) Check(ctx context.Context, r io.Reader) error {
	if l.Digest.Hex == "" {
		return nil
	}
	n, err := checkDigest(io.LimitReader(&endedReader{ctx, r}, l.Size+1), l.Digest)
	if errors.Is(err, ErrDigest) && n < l.Size {
		err = ErrTruncated
	}
	if err != nil {
		return fmt.Errorf("layer %s: %w", l.Digest, err)
	}
	return nil
}

func checkDigest(r io.Reader, want v1.Hash) (int64, error) {
	sum, err := v1.Hasher(want.Algorithm)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	n, err := io.Copy(sum, r)
	if err == nil && hexOf(sum) != want.Hex {
		err = ErrDigest
	}
	return n, err
}

// checkDocument is for what is held in memory.
func checkDocument(text []byte, want v1.Hash) error {
	if _, err := checkDigest(bytes.NewReader(text), want); err != nil {
		return fmt.Errorf("%s: %w", want, err)
	}
	return nil
}

// Archive gives the tar archive in the blob r. When it has been read to its end,
// Verify of it says whether it was what DiffID says.
func (l *Layer) Archive(r io.Reader) (*Archive, error) {
	plain, err := decompress(r)
	if err != nil {
		return nil, err
	}
	a := &Archive{r: plain, want: l.DiffID}
	if l.DiffID.Hex != "" {
		if a.sum, err = v1.Hasher(l.DiffID.Algorithm); err != nil {
			return nil, errors.Join(fmt.Errorf("%w: %w", ErrMalformed, err), plain.Close())
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

// Read reads on.
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

// Close ends the decompression.
func (a *Archive) Close() error { return a.r.Close() }

// parsePlatform reads OS/ARCH or OS/ARCH/VARIANT.
func parsePlatform(text string) (v1.Platform, error) {
	p, err := v1.ParsePlatform(text)
	if err != nil || p.OS == "" || p.Architecture == "" || strings.ContainsAny(text, " \n") {
		return v1.Platform{}, fmt.Errorf("platform %q: want a form like linux/amd64", text)
	}
	return *p, nil
}
