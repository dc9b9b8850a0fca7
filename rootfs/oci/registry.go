package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// registryScheme before a reference excludes a file of the same name.
const registryScheme = "docker://"

const defaultStall = 30 * time.Second

// repository is an image's repository in a registry.
type repository struct {
	repo   name.Repository
	puller *remote.Puller
}

func openRegistry(ctx context.Context, ref string, o Options, want v1.Platform) (_ *Image, err error) {
	parsed, err := name.ParseReference(strings.TrimPrefix(ref, registryScheme))
	if err != nil {
		return nil, fmt.Errorf("%w: neither a file nor the name of an image: %w", ErrNoImage, err)
	}
	transport := newTransport(parsed.Context().RegistryStr(), cmp.Or(o.Stall, defaultStall))
	defer func() {
		if err != nil {
			err = errors.Join(err, transport.Close())
		}
	}()
	keys := o.Keychain
	if keys == nil {
		keys = authn.DefaultKeychain
	}
	puller, err := remote.NewPuller(remote.WithContext(ctx), remote.WithTransport(transport),
		remote.WithAuthFromKeychain(keys), remote.WithUserAgent("gaol"), remote.WithJobs(1))
	if err != nil {
		return nil, err
	}
	top, err := puller.Get(ctx, parsed)
	if err != nil {
		return nil, remoteError(ctx, err)
	}
	i, err := assemble(ctx, &repository{parsed.Context(), puller}, top.Manifest, top.Digest, want)
	if err != nil {
		return nil, err
	}
	i.Kind, i.closers = "registry", []io.Closer{transport}
	return i, nil
}

func (r *repository) manifest(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	m, err := r.puller.Get(ctx, r.repo.Digest(d.Digest.String()))
	if err != nil {
		return nil, remoteError(ctx, err)
	}
	return m.Manifest, nil // the transport has checked its digest
}

func (r *repository) config(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	body, err := r.blob(ctx, d)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := readDocument(body)
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if err != nil && text == nil {
		return nil, err
	}
	return text, checkDocument(text, d.Digest) // its error says more than the library's
}

func (r *repository) layer(d v1.Descriptor) (Layer, error) {
	return Layer{Fetch: func(ctx context.Context) (io.ReadCloser, error) { return r.blob(ctx, d) }}, nil
}

func (r *repository) blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	l, err := r.puller.Layer(ctx, r.repo.Digest(d.Digest.String()))
	if err != nil {
		return nil, remoteError(ctx, err)
	}
	body, err := l.Compressed()
	if err != nil {
		return nil, remoteError(ctx, err)
	}
	return body, nil
}

// readDocument reads a document into memory. With an error, it also returns what it has
// read, unless that is too large.
func readDocument(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if len(text) > maxDocument {
		return nil, fmt.Errorf("%w: a document of more than %d bytes", ErrMalformed, maxDocument)
	}
	return text, err
}
