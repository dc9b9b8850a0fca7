package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"gaol/rootfs/layer"
)

// TestExpandStops checks that only the header is decompressed of an entry larger than the
// limit.
func TestExpandStops(t *testing.T) {
	const claimed, slack = 40 << 30, 64 << 10
	for name, by := range map[string]func(io.Writer) (io.WriteCloser, error){
		"gzip": func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		"zstd": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
	} {
		var out bytes.Buffer
		z, err := by(&out)
		must(t, err)
		w := tar.NewWriter(z)
		must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "layer.tar", Size: claimed}))
		_, err = w.Write(make([]byte, 2<<20))
		must(t, errors.Join(err, z.Close()))
		file := filepath.Join(t.TempDir(), "bomb")
		must(t, os.WriteFile(file, out.Bytes(), 0o644))

		o, temp := options(t), filepath.Join(t.TempDir(), "temp")
		o.Temp = func() (*os.File, error) { return os.Create(temp) }
		if _, err := Open(t.Context(), file, o); !errors.Is(err, layer.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		info, err := os.Stat(temp)
		must(t, err)
		if info.Size() > slack {
			t.Errorf("%s: %d bytes were decompressed", name, info.Size())
		}
	}
}

// zeros is an endless stream. It counts the bytes read.
type zeros struct{ read int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.read > 1<<30 {
		return 0, io.EOF // ends a failing test
	}
	clear(p)
	z.read += int64(len(p))
	return len(p), nil
}

// TestReceiveStops checks that a blob larger than in its manifest is not read to its end.
func TestReceiveStops(t *testing.T) {
	const size = 1000
	var z zeros
	l := Layer{Digest: digest([]byte("other")), Size: size, Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(&z), nil }}
	if err := l.Receive(t.Context(), io.Discard); !errors.Is(err, ErrDigest) {
		t.Errorf("error %v", err)
	}
	if z.read > size+1 {
		t.Errorf("read %d bytes of %d", z.read, size)
	}
}
