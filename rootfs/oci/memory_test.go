package oci

import (
	"archive/tar"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
)

// TestIndexIsBounded checks that the index of an archive is small, however large its headers are.
func TestIndexIsBounded(t *testing.T) {
	const entries, header = 64, 512 << 10
	f, err := os.Create(filepath.Join(t.TempDir(), "archive"))
	must(t, err)
	defer f.Close()
	w := tar.NewWriter(f)
	for i := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: "é" + string(rune('a'+i)), PAXRecords: map[string]string{"GAOL.x": strings.Repeat("x", header)}}
		if i%2 == 0 { // alternately a long name, and a short one with large attributes
			h = &tar.Header{Typeflag: tar.TypeSymlink, Name: strings.Repeat("é/", header/6) + string(rune('a'+i)), Linkname: strings.Repeat("x", header/2)}
		}
		must(t, w.WriteHeader(h))
	}
	must(t, w.Close())
	_, err = f.Seek(0, 0)
	must(t, err)
	var before, after goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&before)
	a := newArchive(f)
	must(t, a.index(t.Context(), f, false))
	goruntime.GC()
	goruntime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 4<<20 {
		t.Errorf("%d bytes are kept of %d entries", kept, entries)
	}
	if _, err := a.open("éb"); err != nil {
		t.Error(err)
	}
}
