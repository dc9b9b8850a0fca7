package rootfs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// announced returns the line of a build's progress that announces downloads, "" for none.
func announced(t *testing.T, progress string) string {
	t.Helper()
	var found []string
	for line := range strings.Lines(progress) {
		if strings.Contains(line, "download ") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	if len(found) > 1 {
		t.Errorf("%d lines announce downloads: %q", len(found), found)
	}
	return strings.Join(found, "\n")
}

// TestAnnouncedDownloads checks the line that announces a build's downloads. It is written before
// anything is downloaded, and only if something is.
func TestAnnouncedDownloads(t *testing.T) {
	r := newRegistry(t)
	r.servePackages(t)
	s := openTiny(t, t.TempDir())
	build := func(ensure bool) string {
		var progress bytes.Buffer
		var err error
		if o := (BuildOptions{Progress: &progress}); ensure {
			o.Name = "other" // which the store lacks
			_, err = s.Ensure(t.Context(), "", o)
		} else {
			_, err = s.Build(t.Context(), o)
		}
		must(t, err)
		line := announced(t, progress.String())
		if fetch := strings.Index(progress.String(), "fetch "); line != "" && strings.Index(progress.String(), line) > fetch {
			t.Errorf("progress %q", &progress)
		}
		return line
	}
	to := ", to " + s.downloads()
	if got, want := build(false), "download Node 24.1.0 and npm 11.0.0 from the npm registry (about 56 MB)"+to; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := build(false); got != "" {
		t.Errorf("with all downloads: %q", got)
	}
	must(t, os.Remove(filepath.Join(s.downloads(), s.plan(t).npm.Integrity)))
	if got, want := build(true), "the image is missing: download npm 11.0.0 from the npm registry (about 3 MB)"+to; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := build(true); got != "" {
		t.Errorf("the image exists: %q", got)
	}
}

// TestAnnouncedPackages is TestAnnouncedDownloads for Debian packages.
func TestAnnouncedPackages(t *testing.T) {
	d := newArchive(t)
	d.fill(t)
	s := d.open(t)
	const registry = "download Node 24.1.0 and npm 11.0.0 from the npm registry (about 56 MB), and "
	to := ", to " + s.downloads()
	for _, tc := range []struct {
		with []string
		want string
	}{
		{[]string{"gamma"}, registry + "Debian packages from this machine's apt sources (about 47 MB)" + to},
		{nil, "download new or updated Debian packages from this machine's apt sources" + to},
	} {
		var progress bytes.Buffer
		_, err := s.Build(t.Context(), BuildOptions{Progress: &progress, With: tc.with})
		must(t, err)
		if got := announced(t, progress.String()); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
	must(t, os.RemoveAll(filepath.Join(s.downloads(), "apt")))
	var progress bytes.Buffer
	_, err := s.Build(t.Context(), BuildOptions{Progress: &progress})
	must(t, err)
	if got, want := announced(t, progress.String()), "download Debian packages from this machine's apt sources (about 40 MB)"+to; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAnnouncedSizes compares the announced sizes with the downloads of the default image, if this
// machine has built it.
func TestAnnouncedSizes(t *testing.T) {
	dir, err := DefaultDir()
	must(t, err)
	s, err := Open(dir)
	must(t, err)
	p := s.plan(t)
	for _, d := range []struct {
		name, file string
		size       int64
	}{{"Node", p.node.Integrity, nodeSize}, {"npm", p.npm.Integrity, npmSize}} {
		info, err := os.Stat(filepath.Join(s.downloads(), d.file))
		if err != nil {
			t.Skipf("the default image was not built on this machine: %v", err)
		}
		if got := (info.Size() + 500_000) / 1_000_000; got != d.size {
			t.Errorf("%s has %d MB, announced are %d", d.name, got, d.size)
		}
	}
}
