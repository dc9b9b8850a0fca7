package sandboxtools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gaol/rootfs"
	"gaol/rootfs/registry"
)

// image finds the image with a name. A source that Options.Images lists is imported if the
// store lacks it. No other name that a caller passes leads to a registry or a file.
func (t *Toolbox) image(ctx context.Context, name string) (*rootfs.Image, error) {
	store, err := rootfs.Open(t.o.Create.Store)
	if err != nil {
		return nil, err
	}
	source, listed := t.sources[name]
	var image *rootfs.Image
	if source != "" {
		image, err = t.importOnce(ctx, store, source)
	} else {
		image, err = store.Lookup(name)
	}
	switch {
	case err == nil && t.o.Images != nil && !listed && name != t.o.Create.Image:
		return nil, refuse(Permission, "imageName", "image %q is not allowed: list it in Options.Images", name)
	case err == nil || ctx.Err() != nil:
		return image, err
	case errors.Is(err, rootfs.ErrNotFound) && !listed:
		return nil, refuse(NotFound, "imageName", "image %.128q: %w: list it in Options.Images, or import it with gaol image import", name, rootfs.ErrNotFound)
	}
	return nil, imageError(err)
}

// imageCodes apply to errors of the store and of an import. The first row that matches
// applies.
var imageCodes = []struct {
	cause error
	code  Code
	cure  string // advice that the cause lacks
}{
	{rootfs.ErrNotFound, NotFound, "make it with gaol image build or gaol image import"},
	{rootfs.ErrAmbiguous, InvalidArgument, "use a longer prefix of the id"},
	{rootfs.ErrNoImage, NotFound, "correct it in Options.Images"},
	{rootfs.ErrUnauthorized, Unauthorized, "use docker login on the host"},
	{rootfs.ErrInsecure, Permission, ""},
	{rootfs.ErrTooLarge, Limit, "import it with gaol image import --max-size"},
	{rootfs.ErrPlatform, BadImage, ""},
	{rootfs.ErrDigest, BadImage, ""},
	{rootfs.ErrTruncated, BadImage, ""},
	{rootfs.ErrMalformed, BadImage, ""},
	{rootfs.ErrRefused, BadImage, ""},
}

func imageError(err error) *Error {
	for _, row := range imageCodes {
		if !errors.Is(err, row.cause) {
			continue
		}
		if row.cure != "" {
			err = fmt.Errorf("%w: %s", err, row.cure)
		}
		return &Error{Code: row.code, Place: "imageName", Err: err}
	}
	return &Error{Code: Internal, Place: "imageName", Err: err}
}

const registryScheme = "docker://"

// imageSources maps each entry of Options.Images to its source for [rootfs.Store.Import],
// or to "" if only the store can have it.
func imageSources(images []string) (map[string]string, error) {
	sources := make(map[string]string, len(images))
	for _, entry := range images {
		switch {
		case strings.HasPrefix(entry, "/") || strings.HasPrefix(entry, "./") || strings.HasPrefix(entry, "../"):
			path, err := filepath.Abs(entry) // the working directory may change
			if err != nil {
				return nil, err
			}
			sources[entry] = path
		case strings.HasPrefix(entry, registryScheme):
			sources[entry] = entry
		case hasRegistryHost(entry):
			// Without the scheme, Import would prefer a folder of that name.
			sources[entry] = registryScheme + entry
		case entry == "" || strings.ContainsAny(strings.TrimPrefix(entry, "sha256:"), "/:"):
			return nil, fmt.Errorf("%q is not a name or id: put a registry's host or docker:// before a reference, / or ./ before a path", entry)
		default:
			sources[entry] = ""
		}
	}
	return sources, nil
}

// hasRegistryHost reports whether a reference begins with a registry's host, as
// registry.example/app:1 does. No registry is the default.
func hasRegistryHost(reference string) bool {
	host, _, found := strings.Cut(reference, "/")
	return found && strings.ContainsAny(host, ".:")
}

// importOnce returns the image of a source, and imports it on first use. It imports one
// source at a time, so that concurrent callers do not import the same one twice.
func (t *Toolbox) importOnce(ctx context.Context, store *rootfs.Store, source string) (*rootfs.Image, error) {
	name := importName(strings.TrimPrefix(source, registryScheme))
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

// importName returns the name in the store of an image that was imported from a reference
// or a path. They may contain characters that are not allowed in names.
func importName(reference string) string {
	const maxLength = 100
	sum := sha256.Sum256([]byte(reference))
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(reference))
	return "pulled-" + plain[:min(len(plain), maxLength)] + "-" + hex.EncodeToString(sum[:4])
}
