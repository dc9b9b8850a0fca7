package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// blobs is where an image's parts are: a registry's repository, or files.
type blobs interface {
	// manifest and config give documents of at most maxDocument bytes, whose digests
	// have been checked.
	manifest(ctx context.Context, d v1.Descriptor) ([]byte, error)
	config(ctx context.Context, d v1.Descriptor) ([]byte, error)

	// layer tells where a layer is.
	layer(d v1.Descriptor) (Layer, error)
}

// document is a manifest or an index, whatever it calls itself.
type document struct {
	Config    *v1.Descriptor  `json:"config"`
	Layers    []v1.Descriptor `json:"layers"`
	Manifests []v1.Descriptor `json:"manifests"`
	FSLayers  json.RawMessage `json:"fsLayers"` // of the first schema, which had no digests to speak of
}

func parseDocument(text []byte) (*document, error) {
	var d document
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&d); err != nil {
		return nil, fmt.Errorf("%w: manifest: %w", ErrMalformed, err)
	}
	if isIndex, isManifest := d.Manifests != nil, d.Config != nil || d.Layers != nil; isIndex == isManifest || d.FSLayers != nil {
		return nil, fmt.Errorf("%w: it's not one of manifest and index", ErrMalformed)
	}
	return &d, nil
}

// assemble follows text, a manifest or an index, to the image for the platform.
func assemble(ctx context.Context, from blobs, text []byte, digest v1.Hash, want v1.Platform) (*Image, error) {
	for range maxIndexes {
		d, err := parseDocument(text)
		if err != nil {
			return nil, err
		}
		if d.Manifests == nil {
			return fromManifest(ctx, from, d, digest, want)
		}
		next, err := pick(d.Manifests, want)
		if err != nil {
			return nil, err
		}
		if text, err = from.manifest(ctx, next); err != nil {
			return nil, err
		}
		digest = next.Digest
	}
	return nil, fmt.Errorf("%w: more than %d indexes in each other", ErrMalformed, maxIndexes)
}

// pick chooses from an index. Entries of no platform may be for any; attestations,
// which docker build adds, say that they are for an unknown one.
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
		return v1.Descriptor{}, fmt.Errorf("%w: want %s, there is %.200q", ErrPlatform, want.String(), offered)
	case len(found) > 1 && found[0].Platform == nil:
		return v1.Descriptor{}, fmt.Errorf("%w: it has %d images, and says nothing of which is which", ErrMalformed, len(found))
	}
	return found[0], nil // of several variants the first is the best, says the specification
}

func fromManifest(ctx context.Context, from blobs, d *document, digest v1.Hash, want v1.Platform) (*Image, error) {
	if d.Config == nil || len(d.Layers) > maxLayers {
		return nil, fmt.Errorf("%w: %d layers, at most %d are taken", ErrMalformed, len(d.Layers), maxLayers)
	}
	text, err := from.config(ctx, *d.Config)
	if err != nil {
		return nil, err
	}
	i := &Image{Digest: digest.String()}
	ids, err := i.configure(text, want)
	if err != nil {
		return nil, err
	}
	if len(ids) != len(d.Layers) {
		return nil, fmt.Errorf("%w: %d layers, and %d in its config", ErrMalformed, len(d.Layers), len(ids))
	}
	for n, descriptor := range d.Layers {
		if len(descriptor.URLs) > 0 || descriptor.Size < 0 {
			return nil, fmt.Errorf("%w: layer %s is elsewhere", ErrMalformed, descriptor.Digest)
		}
		l, err := from.layer(descriptor)
		if err != nil {
			return nil, err
		}
		l.Digest, l.DiffID, l.Size = descriptor.Digest, ids[n], descriptor.Size
		i.Layers = append(i.Layers, l)
	}
	return i, nil
}

// configure takes what counts from an image's config, and returns its diff ids.
func (i *Image) configure(text []byte, want v1.Platform) ([]v1.Hash, error) {
	c, err := v1.ParseConfigFile(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: config: %w", ErrMalformed, err)
	}
	if is := (v1.Platform{OS: c.OS, Architecture: c.Architecture}); is.OS != want.OS || is.Architecture != want.Architecture {
		return nil, fmt.Errorf("%w: want %s, it is for %.80q", ErrPlatform, want.String(), is.String())
	}
	i.Config = Config{c.Config.Env, c.Config.WorkingDir, c.Config.User, c.Config.Entrypoint, c.Config.Cmd}
	return c.RootFS.DiffIDs, i.Config.check()
}

// maxConfig bounds what is kept of a config: a program's start would take no more.
const maxConfig = 128 << 10

func (c *Config) check() error {
	total := len(c.WorkingDir) + len(c.User)
	for _, list := range [][]string{c.Env, c.Entrypoint, c.Cmd} {
		for _, text := range list {
			total += len(text) + 1
		}
	}
	if total > maxConfig {
		return fmt.Errorf("%w: a config of %d bytes", ErrMalformed, total)
	}
	return nil
}
