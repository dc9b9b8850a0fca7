package sandboxtools

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"gaol/rootfs"
	"gaol/rootfs/registry"
)

// image finds the image with a name. A source that Options.Images lists is imported if the
// store lacks it. No other name that a caller passes leads to a registry or a file.
func (t *Toolbox) image(ctx context.Context, name string) (*rootfs.Image, error) {
	source, listed := t.o.Images[name]
	if !listed && t.o.Images != nil && name != t.o.Create.Image {
		return nil, refuse(Permission, "imageName", "image %.128q is not allowed: list it in Options.Images", name)
	}
	store, err := rootfs.Open(t.o.Create.Store)
	if err != nil {
		return nil, err
	}
	var image *rootfs.Image
	if source == "" {
		image, err = store.Lookup(name)
	} else {
		image, err = t.importOnce(ctx, store, source)
	}
	switch {
	case err == nil:
		return image, nil
	case source == "" && errors.Is(err, rootfs.ErrNotFound):
		return nil, refuse(NotFound, "imageName", "image %.128q: %w: list it in Options.Images, or import it with gaol image import", name, rootfs.ErrNotFound)
	}
	return nil, &Error{Code: cmp.Or(findCode(codes, err), findCode(imageCodes, err), Internal), Place: "imageName", Err: err}
}

// imageCodes apply to errors of the store and of an import.
var imageCodes = []codeCauses{
	{NotFound, []error{rootfs.ErrNotFound, rootfs.ErrNoImage}},
	{InvalidArgument, []error{rootfs.ErrAmbiguous}},
	{Unauthorized, []error{rootfs.ErrUnauthorized}},
	{Permission, []error{rootfs.ErrInsecure}},
	{Limit, []error{rootfs.ErrTooLarge}},
	{BadImage, []error{rootfs.ErrPlatform, rootfs.ErrDigest, rootfs.ErrTruncated, rootfs.ErrMalformed, rootfs.ErrRefused}},
}

// importOnce returns the image of a source, and imports it on first use. It imports one
// source at a time, so that concurrent callers do not import the same one twice.
func (t *Toolbox) importOnce(ctx context.Context, store *rootfs.Store, source string) (*rootfs.Image, error) {
	name := fmt.Sprintf("pulled-%x", sha256.Sum256([]byte(source))) // the source may contain characters that names cannot
	image, err := store.Lookup(name)
	if !errors.Is(err, rootfs.ErrNotFound) {
		return image, err
	}
	select {
	case t.imports <- struct{}{}:
		defer func() { <-t.imports }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	image, err = store.Lookup(name)
	if errors.Is(err, rootfs.ErrNotFound) {
		image, err = store.Import(ctx, source, rootfs.ImportOptions{Name: name, Registry: registry.Client{}})
	}
	return image, err
}
