package oci

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

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
