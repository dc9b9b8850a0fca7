package oci

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is the most memory that a zstd frame may ask for: what the zstd tool
// itself takes without being told to.
const maxWindow = 128 << 20

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// decompress looks at how r begins: media types and file names are often wrong.
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

// isCompressed says so of the file that begins like that.
func isCompressed(start []byte) bool {
	return bytes.HasPrefix(start, gzipMagic) || bytes.HasPrefix(start, zstdMagic)
}
