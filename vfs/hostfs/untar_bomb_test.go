package hostfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"testing"
)

// repeated is a stream of the same text again and again. It counts what is read.
type repeated struct {
	text []byte
	read int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.read > 1<<28 {
		return 0, io.EOF // for a test that fails
	}
	n := copy(p, r.text[r.read%len(r.text):])
	r.read += n
	return n, nil
}

// TestUntarBombs: an archive whose headers do not end, or say too much, is not read on.
func TestUntarBombs(t *testing.T) {
	f, _ := newMemoryFS(t, Limits{})
	headers := func(h tar.Header) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		_ = w.Flush() // pads a global header, and fails where content is missing
		return out.Bytes()
	}
	attributes := headers(tar.Header{Typeflag: tar.TypeReg, Name: "x", PAXRecords: map[string]string{"GAOL.x": "y"}})
	for name, tc := range map[string]struct {
		text []byte
		most int
	}{
		"file":              {headers(tar.Header{Typeflag: tar.TypeReg, Name: "x", Size: 40 << 30}), 16 << 10},
		"global headers":    {headers(tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}}), maxHeaders},
		"headers of no one": {attributes[:len(attributes)-512], maxHeaders}, // without the entry that they are for
	} {
		r := &repeated{text: tc.text}
		_, err := f.Untar(r, "/", UntarOptions{})
		if _, is := errors.AsType[*LimitError](err); !is {
			t.Errorf("%s: %v", name, err)
		}
		if r.read > tc.most {
			t.Errorf("%s: read %d bytes", name, r.read)
		}
	}
}
