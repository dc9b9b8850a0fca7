package oci

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory that a zstd frame may ask for. It is the default limit of the
// zstd tool.
const maxWindow = 128 << 20

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// decompress detects the compression from the first bytes of r, because media types and
// file names are often wrong.
func decompress(r io.Reader) (io.ReadCloser, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	start, err := in.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(start, gzipMagic):
		return gzip.NewReader(in)
	case bytes.HasPrefix(start, zstdMagic):
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return io.NopCloser(in), nil
}

// isCompressed reports whether a file that starts with these bytes is compressed.
func isCompressed(start []byte) bool {
	return bytes.HasPrefix(start, gzipMagic) || bytes.HasPrefix(start, zstdMagic)
}
