package rootfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/zstd"

	"gaol/rootfs/layer"
)

// layoutOf writes an OCI layout with an image for another platform beside i.
func layoutOf(t *testing.T, i v1.Image) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	p, err := layout.Write(dir, empty.Index)
	must(t, err)
	c, err := i.ConfigFile()
	must(t, err)
	other := c.DeepCopy()
	other.Architecture = "s390x"
	foreign, err := mutate.ConfigFile(i, other)
	must(t, err)
	must(t, p.AppendImage(foreign, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: "s390x"})))
	must(t, p.AppendImage(i, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: c.Architecture})))
	return dir
}

func dockerSave(t *testing.T, i v1.Image) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "saved.tar")
	tag, err := name.NewTag("registry.example/app:1")
	must(t, err)
	must(t, tarball.WriteToFile(file, tag, i))
	return file
}

// tarOf packs a folder as tar would.
func tarOf(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "packed.tar")
	f, err := os.Create(file)
	must(t, err)
	defer f.Close()
	w := tar.NewWriter(f)
	must(t, w.AddFS(os.DirFS(dir)))
	must(t, w.Close())
	return file
}

// compressed returns a copy of the file, compressed.
func compressed(t *testing.T, file string, by func(io.Writer) io.WriteCloser) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	var out bytes.Buffer
	w := by(&out)
	_, err = w.Write(text)
	must(t, errors.Join(err, w.Close()))
	small := filepath.Join(t.TempDir(), "compressed")
	must(t, os.WriteFile(small, out.Bytes(), 0o644))
	return small
}

func byGzip(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }

func byZstd(w io.Writer) io.WriteCloser {
	z, err := zstd.NewWriter(w)
	if err != nil {
		panic(err)
	}
	return z
}

// TestImportLocal: all forms of an image come to the same.
func TestImportLocal(t *testing.T) {
	i := simpleImage(t)
	plain := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(plain, "bin"), 0o700))
	must(t, os.MkdirAll(filepath.Join(plain, "etc"), 0o700))
	must(t, os.WriteFile(filepath.Join(plain, "bin/tool"), []byte("2"), 0o700))
	must(t, os.WriteFile(filepath.Join(plain, "etc/passwd"), []byte("root"), 0o600))
	lay, save, packed := layoutOf(t, i), dockerSave(t, i), tarOf(t, plain)
	s := openTiny(t, t.TempDir())
	ids := map[bool]string{}
	for _, tc := range []struct {
		source, kind string
		configured   bool
	}{
		{lay, "oci-layout", true},
		{tarOf(t, lay), "oci-layout", true},
		{compressed(t, tarOf(t, lay), byGzip), "oci-layout", true},
		{save, "docker-archive", true},
		{compressed(t, save, byZstd), "docker-archive", true},
		{plain, "folder", false},
		{packed, "tar", false},
		{compressed(t, packed, byGzip), "tar", false},
		{compressed(t, packed, byZstd), "tar", false},
	} {
		image, err := s.Import(t.Context(), tc.source, named("local"))
		must(t, err)
		if ids[tc.configured] == "" {
			ids[tc.configured] = image.ID
			if image.Imported.Kind != tc.kind || image.Imported.Blobs != nil {
				t.Errorf("%+v", image.Imported)
			}
		}
		if image.ID != ids[tc.configured] {
			t.Errorf("%s %s: id %s, others have %s", tc.kind, tc.source, image.ID, ids[tc.configured])
		}
		checkImported(t, image.Root(), map[string]string{"bin/tool": "2", "etc/passwd": "root"})
	}
	if ids[true] == ids[false] {
		t.Error("an image's config does not count for its id")
	}
	if left, _ := os.ReadDir(s.tmp()); len(left) != 0 {
		t.Errorf("%d temporary folders are left", len(left))
	}
}

// TestImportLocalFailures: as with registries, so with files.
func TestImportLocalFailures(t *testing.T) {
	i := simpleImage(t)
	lay, save := layoutOf(t, i), dockerSave(t, i)
	half := filepath.Join(t.TempDir(), "half.tar")
	text, err := os.ReadFile(save)
	must(t, err)
	must(t, os.WriteFile(half, text[:len(text)/2/512*512+100], 0o644))
	layers, err := i.Layers()
	must(t, err)
	digest, err := layers[0].Digest()
	must(t, err)
	size, err := layers[0].Size()
	must(t, err)
	blob := filepath.Join(lay, "blobs/sha256", digest.Hex)
	must(t, os.WriteFile(blob, make([]byte, size), 0o644))
	bomb := compressed(t, zeros(t), byGzip)
	swapped := swapLayers(t, save)
	for name, tc := range map[string]struct {
		source string
		o      ImportOptions
		want   error
	}{
		"digest":     {lay, named("x"), ErrDigest},
		"truncated":  {half, named("x"), ErrTruncated},
		"swapped":    {swapped, named("x"), ErrDigest},
		"bomb":       {bomb, ImportOptions{Limits: layer.Limits{Bytes: 1 << 20}}, ErrTooLarge},
		"nothing":    {"./nothing", named("x"), ErrNoImage},
		"device":     {"/dev/null", named("x"), ErrNoImage},
		"name":       {lay, named("X"), nil},
		"no name":    {"No Such Name", named("x"), ErrNoImage},
		"platform":   {lay, ImportOptions{Platform: "linux/s390x"}, ErrUnsupported},
		"odd limits": {lay, ImportOptions{Limits: layer.Limits{Bytes: -1}}, nil},
	} {
		s := openTiny(t, t.TempDir())
		_, err := s.Import(t.Context(), tc.source, tc.o)
		if _, typed := errors.AsType[*ImportError](err); !typed || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		checkNothing(t, s)
	}
}

// zeros is a tar of a file that compresses well.
func zeros(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "zeros"), make([]byte, 4<<20), 0o644))
	return tarOf(t, dir)
}

// swapLayers changes the order of the layers of what docker saved.
func swapLayers(t *testing.T, save string) string {
	t.Helper()
	in, err := os.Open(save)
	must(t, err)
	defer in.Close()
	file := filepath.Join(t.TempDir(), "swapped.tar")
	out, err := os.Create(file)
	must(t, err)
	defer out.Close()
	w := tar.NewWriter(out)
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		text, err := io.ReadAll(r)
		must(t, err)
		if h.Name == "manifest.json" {
			start, rest, _ := strings.Cut(string(text), `"Layers":["`)
			one, rest, _ := strings.Cut(rest, `","`)
			two, rest, _ := strings.Cut(rest, `"`)
			text = []byte(start + `"Layers":["` + two + `","` + one + `"` + rest)
		}
		h.Size = int64(len(text))
		must(t, w.WriteHeader(h))
		_, err = w.Write(text)
		must(t, err)
	}
	must(t, w.Close())
	return file
}

// TestImportOwn: the folder of an image that gaol built comes to the same image, which
// is trusted as far as gaol's own; in a store that lacks that it's not.
func TestImportOwn(t *testing.T) {
	r := newRegistry(t)
	r.servePackages(t)
	s, other := openTiny(t, t.TempDir()), openTiny(t, t.TempDir())
	built, err := s.Build(t.Context(), BuildOptions{})
	must(t, err)
	same, err := s.Import(t.Context(), built.Root(), named("copy"))
	must(t, err)
	if same.ID != built.ID || same.Imported != nil || same.CanFork() != nil {
		t.Errorf("imported %+v, built %+v", same, built)
	}
	imported, err := other.Import(t.Context(), built.Root(), named("node24.1.0-000000000000"))
	must(t, err)
	if imported.ID != built.ID || imported.Imported == nil || imported.Imported.Libc != "glibc" || !imported.Imported.Zygote {
		t.Errorf("imported %+v %+v", imported, imported.Imported)
	}
	if err := imported.CanFork(); !errors.Is(err, ErrUnsupported) {
		t.Errorf("not trusted: %v", err)
	}
	o := named("copy")
	o.TrustNode = true
	trusted, err := other.Import(t.Context(), built.Root(), o)
	must(t, err)
	again, err := other.Import(t.Context(), built.Root(), named("copy"))
	must(t, err)
	if trusted.CanFork() != nil || again.CanFork() != nil {
		t.Errorf("trusted: %v, then %v", trusted.CanFork(), again.CanFork())
	}
	rebuilt, err := other.Build(t.Context(), BuildOptions{})
	must(t, err)
	if diff := cmp.Diff([]any{built.Node, built.NPM, built.Size}, []any{rebuilt.Node, rebuilt.NPM, rebuilt.Size}); diff != "" || rebuilt.Imported != nil {
		t.Errorf("built over an import: %s", diff)
	}
}

// TestImportTakesNoName: an imported image that has the name of a built one is not
// what a runtime gets that asks for none.
func TestImportTakesNoName(t *testing.T) {
	r := newRegistry(t)
	r.servePackages(t)
	s := openTiny(t, t.TempDir())
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "x"), nil, 0o644))
	evil, err := s.Import(t.Context(), dir, named(s.plan(t).names[0]))
	must(t, err)
	i, err := s.Ensure(t.Context(), "", BuildOptions{})
	must(t, err)
	if i.ID == evil.ID || i.Imported != nil {
		t.Errorf("the default image is %+v", i)
	}
}

// TestImportNode: where Node is found, and what of it can be told without running it.
func TestImportNode(t *testing.T) {
	program, err := os.ReadFile("/usr/bin/env")
	must(t, err)
	official := append(bytes.Clone(program), "\x00https://x.example/download/release/v24.5.6/node-v24.5.6.tar.gz\x00"...)
	loader := closureLoader(t)
	for name, tc := range map[string]struct {
		files         map[string][]byte
		env           []string
		node, at, lib string
	}{
		"usual place":      {map[string][]byte{"usr/local/bin/node": official, loader: program}, nil, "24.5.6", nodeBinary, "glibc"},
		"on PATH":          {map[string][]byte{"opt/n/node": official, loader: program}, []string{"PATH=/bin:/opt/n"}, "24.5.6", "/opt/n/node", "glibc"},
		"not on PATH":      {map[string][]byte{"opt/n/node": official, loader: program}, nil, "", "", ""},
		"told by env":      {map[string][]byte{"usr/bin/node": program, loader: program}, []string{"NODE_VERSION=22.1.2"}, "22.1.2", "/usr/bin/node", "glibc"},
		"told wrongly":     {map[string][]byte{"usr/bin/node": program, loader: program}, []string{"NODE_VERSION=22; rm"}, "unknown", "/usr/bin/node", "glibc"},
		"no loader":        {map[string][]byte{"usr/local/bin/node": official}, nil, "", "", ""},
		"a script":         {map[string][]byte{"usr/local/bin/node": []byte("#!/bin/sh\n")}, nil, "", "", ""},
		"a broken program": {map[string][]byte{"usr/local/bin/node": program[:100]}, nil, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var entries []entry
			for name, content := range tc.files {
				entries = append(entries, file(name, string(content), 0o755))
			}
			s := openTiny(t, t.TempDir())
			i, err := s.Import(t.Context(), dockerSave(t, imageOf(t, v1.Config{Env: tc.env}, layerOf(t, entries...))), anonymous)
			must(t, err)
			if m := i.Imported; i.Node != tc.node || m.Libc != tc.lib || m.NodePath != tc.at {
				t.Errorf("Node %q, %q, %q", i.Node, m.Libc, m.NodePath)
			}
			if i.Imported.Zygote {
				t.Error("a zygote can be had without a C library")
			}
		})
	}
}

// closureLoader is the loader of this host's programs.
func closureLoader(t *testing.T) string {
	t.Helper()
	c, err := closureOf("/usr/bin/env", []string{"/usr/lib", "/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu"})
	must(t, err)
	return strings.TrimPrefix(c.loader, "/")
}

// TestImportOwnsStarters: whatever an image has where our programs go, ours are there.
func TestImportOwnsStarters(t *testing.T) {
	link := func(name, target string) entry {
		return entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}}
	}
	for name, entries := range map[string][]entry{
		"files":       {file("usr/libexec/gaol/enter", "evil", 0o777), file("usr/libexec/gaol/catatonit", "evil", 0o777), file("usr/libexec/gaol/more", "evil", 0o777)},
		"links":       {link("usr/libexec/gaol/enter", "/bin/evil"), file("bin/evil", "evil", 0o755)},
		"folder link": {link("usr/libexec/gaol", "/tmp"), file("tmp/enter", "evil", 0o755)},
		"file":        {file("usr/libexec/gaol", "evil", 0o755)},
		"mount links": {link("tmp", "/etc"), link("home", "/etc"), link("proc", "/etc"), file("workspace", "", 0o644), file("dev/x", "", 0o644)},
	} {
		s := openTiny(t, t.TempDir())
		i, err := s.Import(t.Context(), dockerSave(t, imageOf(t, v1.Config{}, layerOf(t, entries...))), anonymous)
		must(t, err)
		checkImported(t, i.Root(), nil)
		names, err := os.ReadDir(filepath.Join(i.Root(), "usr/libexec/gaol"))
		must(t, err)
		if len(names) != 3 {
			t.Errorf("%s: %v", name, names)
		}
		for _, n := range names {
			if text, _ := os.ReadFile(filepath.Join(i.Root(), "usr/libexec/gaol", n.Name())); n.Type() != 0 || strings.Contains(string(text), "evil") {
				t.Errorf("%s: %s is theirs", name, n)
			}
		}
		if devices, err := os.ReadDir(filepath.Join(i.Root(), "dev")); err != nil && !errors.Is(err, fs.ErrNotExist) || len(devices) > 0 {
			t.Errorf("%s: /dev has %v", name, devices)
		}
	}
}
