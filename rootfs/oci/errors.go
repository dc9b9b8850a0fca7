package oci

import "errors"

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
