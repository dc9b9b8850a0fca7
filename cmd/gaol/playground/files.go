package playground

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
)

// Names of special files.
const (
	Index    = "index.html"
	Embed    = "embed.js" // which other sites load
	Licenses = "licenses.txt"
)

// Files are the names of all files of the page.
var Files = []string{Index, "main.js", "style.css", Embed, Licenses}

// Nonce is replaced in [Index] by the nonce of the response's Content-Security-Policy.
const Nonce = "{{nonce}}"

// types are the media types of files by their extension. Package mime's depend on the machine.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".txt":  "text/plain; charset=utf-8",
}

// folder contains the index, and the files that make page generates from page/src.
//
//go:embed page/index.html built
var folder embed.FS

// file is a file of the page.
type file struct {
	plain, gzipped []byte
	tag            string // identifies the content
}

// embedded reads the files of this binary.
func embedded() (map[string]*file, error) {
	files := map[string]*file{}
	for _, name := range Files {
		dir := "built/"
		if name == Index {
			dir = "page/"
		}
		text, err := folder.ReadFile(dir + name)
		if err != nil {
			return nil, err
		}
		if files[name], err = newFile(text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

func newFile(text []byte) (*file, error) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return &file{text, zipped.Bytes(), hex.EncodeToString(sum[:16])}, nil
}
