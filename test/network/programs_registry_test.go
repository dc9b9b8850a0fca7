package network

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gaol/test/harness"
)

// registry is a static npm registry: documents and tarballs by path.
type registry struct {
	files    map[string][]byte
	tarballs atomic.Int64 // that were downloaded
}

func (r *registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, ok := r.files[q.URL.Path]
	switch {
	case q.Method == http.MethodPost && strings.HasPrefix(q.URL.Path, "/-/npm/v1/security/"):
		_, _ = io.Copy(io.Discard, q.Body)
		body = []byte("{}") // no advisories
	case !ok:
		http.NotFound(w, q)
		return
	case strings.HasSuffix(q.URL.Path, ".tgz"):
		r.tarballs.Add(1)
		w.Header().Set("Content-Type", "application/octet-stream")
	}
	_, _ = w.Write(body)
}

// manifest is a version of a package.
type manifest struct {
	Name             string            `json:"name"`
	Version          string            `json:"version"`
	Main             string            `json:"main"`
	Bin              map[string]string `json:"bin,omitempty"`
	Scripts          map[string]string `json:"scripts,omitempty"`
	Dependencies     map[string]string `json:"dependencies,omitempty"`
	HasInstallScript bool              `json:"hasInstallScript,omitempty"`
	Dist             *dist             `json:"dist,omitempty"`
}

type dist struct {
	Tarball   string `json:"tarball"`
	Integrity string `json:"integrity"`
}

// treeSize is the number of packages of the tree.
func treeSize() int { return harness.Fewer(60, 20) }

// packageName returns the name of the package i of the tree. A third of them are scoped.
func packageName(i int) string {
	if i%3 == 2 {
		return fmt.Sprintf("@tree/p%02d", i)
	}
	return fmt.Sprintf("p%02d", i)
}

// versions are those of each package. Newer ones than a range allows must not be chosen.
var versions = []string{"1.0.0", "1.2.3", "1.4.0", "2.1.0", "3.0.0-beta.1"}

// ranges select a version each.
var ranges = []string{"^1.0.0", "~1.2.0", ">=1.0.0 <2", "1.x", "^2.0.0", "1.0.0", "*"}

// newManifest returns a version of the package i. It depends on two later ones, as in a
// binary tree, and on one from another branch.
func newManifest(i int, version string) manifest {
	m := manifest{Name: packageName(i), Version: version, Main: "index.js", Dependencies: map[string]string{}}
	for n, d := range []int{2*i + 1, 2*i + 2, i + 17} {
		if d < treeSize() {
			m.Dependencies[packageName(d)] = ranges[(i+n)%len(ranges)]
		}
	}
	if i%10 == 0 {
		m.Bin = map[string]string{fmt.Sprintf("p%02d", i): "bin/program.js"}
	}
	if i == 7 {
		m.Scripts, m.HasInstallScript = map[string]string{"postinstall": "node made.js"}, true
	}
	return m
}

// contents returns the files of a package. Its program prints all packages below it.
func contents(i int, m manifest) map[string]string {
	text, _ := json.Marshal(m) // always possible
	files := map[string]string{
		"package.json":   string(text),
		"index.js":       "const { name, version, dependencies = {} } = require('./package.json');\nmodule.exports = [name + '@' + version, ...Object.keys(dependencies).flatMap((d) => require(d))];\n",
		"README.md":      "# " + m.Name + "\n",
		"lib/data/a.txt": strings.Repeat(m.Name+" "+m.Version+"\n", 100*(i+1)),
	}
	if m.Bin != nil {
		files["bin/program.js"] = "#!/usr/bin/env node\nconsole.log(require('..').join('\\n'));\n"
	}
	if m.HasInstallScript {
		files["made.js"] = "require('fs').writeFileSync('made.txt', 'made\\n');\n"
	}
	if i == treeSize()-1 { // one that takes many packets, and cannot be compressed
		r := rand.NewChaCha8([32]byte{})
		big := make([]byte, 3<<20)
		_, _ = r.Read(big)
		files["lib/big.bin"] = string(big)
	}
	return files
}

// newRegistry returns one that is reached at url.
func newRegistry(t *testing.T, url string) *registry {
	t.Helper()
	r := &registry{files: map[string][]byte{}}
	for i := range treeSize() {
		name := packageName(i)
		list := map[string]manifest{}
		for _, version := range versions {
			m := newManifest(i, version)
			file := "/" + name + "/-/" + path.Base(name) + "-" + version + ".tgz"
			r.files[file] = pack(t, contents(i, m))
			sum := sha512.Sum512(r.files[file])
			m.Dist = &dist{url + file, "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
			list[version] = m
		}
		document, err := json.Marshal(map[string]any{"name": name, "dist-tags": map[string]string{"latest": "2.1.0"}, "versions": list})
		if err != nil {
			t.Fatal(err)
		}
		r.files["/"+name] = document
	}
	return r
}

// pack makes a package's tarball.
func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	w := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: "package/" + name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
