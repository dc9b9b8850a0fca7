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

// decompress detects the compression from the first bytes of r, because media types and
// file names are often wrong.
func decompress(r io.Reader) (plain io.ReadCloser, compressed bool, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	start, err := in.Peek(4)
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		plain, err = gzip.NewReader(in)
		return plain, true, err
	case bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, false, err
		}
		return d.IOReadCloser(), true, nil
	}
	return io.NopCloser(in), false, nil
}
