package rootfs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"gaol/rootfs/programs"
	"gaol/test/tartest"
)

// TestImportOwn checks that importing the folder of an image that gaol built gives the same,
// trusted image, and that it is not trusted in a store that lacks the built image.
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

// TestImportIsNotDefault checks that an imported image with the name of a built one does not
// become the default image.
func TestImportIsNotDefault(t *testing.T) {
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

// TestImportNode checks where Node is found, and which facts about it are found without running it.
func TestImportNode(t *testing.T) {
	program, err := os.ReadFile("/usr/bin/env")
	must(t, err)
	official := append(bytes.Clone(program), "\x00https://x.example/download/release/v24.5.6/node-v24.5.6.tar.gz\x00"...)
	loader := hostLoader(t)
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
				t.Error("the image claims to have a zygote without a C library")
			}
		})
	}
}

// hostLoader returns the loader of this host's programs.
func hostLoader(t *testing.T) string {
	t.Helper()
	loader, _, err := programs.FindLibraries(t.Context(), "/usr/bin/env")
	must(t, err)
	return strings.TrimPrefix(loader, "/")
}

// TestImportReplacesJailFiles checks that gaol's programs replace the image's files at their paths.
func TestImportReplacesJailFiles(t *testing.T) {
	link := tartest.Link
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
		if len(names) != 4 {
			t.Errorf("%s: %v", name, names)
		}
		for _, n := range names {
			if text, _ := os.ReadFile(filepath.Join(i.Root(), "usr/libexec/gaol", n.Name())); n.Type() != 0 || strings.Contains(string(text), "evil") {
				t.Errorf("%s: %s is the image's", name, n)
			}
		}
		if devices, err := os.ReadDir(filepath.Join(i.Root(), "dev")); err != nil && !errors.Is(err, fs.ErrNotExist) || len(devices) > 0 {
			t.Errorf("%s: /dev has %v", name, devices)
		}
	}
}
