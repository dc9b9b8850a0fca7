package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

var errDocument = fmt.Errorf("%w: a document of more than %d bytes", ErrMalformed, MaxDocument)

// readBlob reads a document of at most MaxDocument bytes, and checks its digest.
func readBlob(ctx context.Context, from Repository, d v1.Descriptor) ([]byte, error) {
	if d.Size > MaxDocument {
		return nil, errDocument
	}
	var text bytes.Buffer
	l := layerOf(from, d)
	err := l.Receive(ctx, &text)
	return text.Bytes(), err
}

// layerOf returns a blob, without a DiffID.
func layerOf(from Repository, d v1.Descriptor) Layer {
	open := func(ctx context.Context) (io.ReadCloser, error) { return from.Blob(ctx, d.Digest) }
	return Layer{Digest: d.Digest, Size: d.Size, Open: open}
}

// document is a manifest or an index. Its media type is ignored.
type document struct {
	Config    *v1.Descriptor  `json:"config"`
	Layers    []v1.Descriptor `json:"layers"`
	Manifests []v1.Descriptor `json:"manifests"`
	FSLayers  json.RawMessage `json:"fsLayers"` // of schema 1, which is not content-addressed
}

// assemble resolves a manifest or an index to the image for the platform.
func assemble(ctx context.Context, from Repository, want v1.Platform) (*Image, error) {
	text, digest := from.Image()
	for range maxIndexes {
		var d document
		if err := json.NewDecoder(bytes.NewReader(text)).Decode(&d); err != nil {
			return nil, fmt.Errorf("%w: manifest: %w", ErrMalformed, err)
		}
		if isIndex, isManifest := d.Manifests != nil, d.Config != nil || d.Layers != nil; isIndex == isManifest || d.FSLayers != nil {
			return nil, fmt.Errorf("%w: neither a manifest nor an index", ErrMalformed)
		}
		if d.Manifests == nil {
			return fromManifest(ctx, from, &d, digest, want)
		}
		next, err := pick(d.Manifests, want)
		if err != nil {
			return nil, err
		}
		if text, err = from.Manifest(ctx, next); err != nil {
			return nil, err
		}
		digest = next.Digest
	}
	return nil, fmt.Errorf("%w: more than %d nested indexes", ErrMalformed, maxIndexes)
}

// pick selects the entry of an index for the platform. An entry without a platform may be
// for any. The attestations that docker build adds have the platform "unknown".
func pick(list []v1.Descriptor, want v1.Platform) (v1.Descriptor, error) {
	var found []v1.Descriptor
	var offered []string
	for _, d := range list {
		if d.Platform == nil || d.Platform.Satisfies(want) {
			found = append(found, d)
		} else {
			offered = append(offered, d.Platform.String())
		}
	}
	switch {
	case len(found) == 0:
		return v1.Descriptor{}, fmt.Errorf("%w: want %s, the index has %.200q", ErrPlatform, want.String(), offered)
	case len(found) > 1 && found[0].Platform == nil:
		return v1.Descriptor{}, fmt.Errorf("%w: the index has %d images without a platform", ErrMalformed, len(found))
	}
	return found[0], nil // by the specification, the first match is the best
}

func fromManifest(ctx context.Context, from Repository, d *document, digest v1.Hash, want v1.Platform) (*Image, error) {
	if d.Config == nil {
		return nil, fmt.Errorf("%w: a manifest without a config", ErrMalformed)
	}
	text, err := readBlob(ctx, from, *d.Config)
	if err != nil {
		return nil, err
	}
	i := &Image{Digest: digest.String()}
	ids, err := i.configure(text, want, len(d.Layers))
	if err != nil {
		return nil, err
	}
	for n, descriptor := range d.Layers {
		if len(descriptor.URLs) > 0 || descriptor.Size < 0 {
			return nil, fmt.Errorf("%w: layer %s is at another address", ErrMalformed, descriptor.Digest)
		}
		l := layerOf(from, descriptor)
		l.DiffID = ids[n]
		i.Layers = append(i.Layers, l)
	}
	return i, nil
}

// configure parses the config of an image with that many layers, checks the platform, and
// returns the diff ids.
func (i *Image) configure(text []byte, want v1.Platform, layers int) ([]v1.Hash, error) {
	c, err := v1.ParseConfigFile(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: config: %w", ErrMalformed, err)
	}
	if is := (v1.Platform{OS: c.OS, Architecture: c.Architecture}); is.OS != want.OS || is.Architecture != want.Architecture {
		return nil, fmt.Errorf("%w: want %s, it is for %.80q", ErrPlatform, want.String(), is.String())
	}
	if n := len(c.RootFS.DiffIDs); n != layers || n > maxLayers {
		return nil, fmt.Errorf("%w: %d layers, and %d in its config; the maximum is %d", ErrMalformed, layers, n, maxLayers)
	}
	i.Config = Config{c.Config.Env, c.Config.WorkingDir, c.Config.User, c.Config.Entrypoint, c.Config.Cmd}
	return c.RootFS.DiffIDs, i.Config.check()
}

// maxConfig bounds the recorded part of a config: execve takes no more arguments than that.
const maxConfig = 128 << 10

func (c *Config) check() error {
	total := len(c.WorkingDir) + len(c.User)
	for _, text := range slices.Concat(c.Env, c.Entrypoint, c.Cmd) {
		total += len(text) + 1
	}
	if total > maxConfig {
		return fmt.Errorf("%w: a config of %d bytes", ErrMalformed, total)
	}
	return nil
}

// registryScheme before a reference excludes a file of the same name.
const registryScheme = "docker://"

// Registry finds images in registries. Package registry implements it. Programs that import none do
// not link the client.
type Registry interface {
	// Open opens the repository of an image. A server that sends nothing for the time stall is an error.
	Open(ctx context.Context, reference string, stall time.Duration) (Repository, error)
}

// Repository contains an image and its parts: a repository of a registry, or a layout in files. Its
// errors wrap this package's.
type Repository interface {
	// Image returns the image's manifest or index, with its digest.
	Image() (text []byte, digest v1.Hash)

	// Manifest returns a document of at most [MaxDocument] bytes after checking its digest.
	Manifest(ctx context.Context, d v1.Descriptor) ([]byte, error)

	// Blob opens a blob, whose content is not checked.
	Blob(ctx context.Context, digest v1.Hash) (io.ReadCloser, error)

	// Close closes connections and files.
	Close()
}

func openRemote(ctx context.Context, ref string, o Options, want v1.Platform) (*Image, error) {
	if o.Registry == nil {
		return nil, fmt.Errorf("%w: no such file, and without a client of registries", ErrNoImage)
	}
	repo, err := o.Registry.Open(ctx, strings.TrimPrefix(ref, registryScheme), o.Stall)
	if err != nil {
		return nil, err
	}
	i, err := assemble(ctx, repo, want)
	if err != nil {
		repo.Close()
		return nil, err
	}
	i.Kind, i.close = "registry", repo.Close
	return i, nil
}
