package test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"gaol/policy"
	"gaol/rootfs"
	"gaol/runtime"
)

// busyboxImage is what docker save would write of an image of busybox.
func busyboxImage(t *testing.T) string {
	t.Helper()
	program, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	var blob bytes.Buffer
	w := tar.NewWriter(&blob)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o4755, Size: int64(len(program))},
		{Typeflag: tar.TypeLink, Name: "opt/tools/sh", Linkname: "bin/busybox"},
		{Typeflag: tar.TypeSymlink, Name: "home", Linkname: "/etc"},
		{Typeflag: tar.TypeDir, Name: "app/", Mode: 0o700, Uid: 1000},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			_, _ = w.Write(program)
		}
	}
	_ = w.Close()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(blob.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = "linux", goruntime.GOARCH
	c.Config = v1.Config{Env: []string{"PATH=/opt/tools", "LD_PRELOAD=/x"}, User: "root", WorkingDir: "/app"}
	if image, err = mutate.ConfigFile(image, c); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("registry.example/busybox:1")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "busybox.tar")
	if err := tarball.WriteToFile(file, tag, image); err != nil {
		t.Fatal(err)
	}
	return file
}

// imported imports into a store of the test's own. Zygotes of the image end with the test.
func imported(t *testing.T, source string, o rootfs.ImportOptions) (store string) {
	t.Helper()
	store = filepath.Join(t.TempDir(), "store")
	s, err := rootfs.Open(store)
	if err != nil {
		t.Fatal(err)
	}
	o.Name = "app"
	if _, err := s.Import(t.Context(), source, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runtime.CloseIdle(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// An image without Node runs commands, as a guest like any other.
func TestImportedWithoutNode(t *testing.T) {
	o := ours(runtime.Options{Store: imported(t, busyboxImage(t), rootfs.ImportOptions{})})
	o.Image, o.Launcher = "app", runtime.LauncherExec
	rt := createAs(t, o)
	res, err := rt.Command(t.Context(), "sh", []string{"-c",
		"echo $PATH; echo $LD_PRELOAD; /bin/busybox id -u; /bin/busybox pwd; /bin/busybox ls -ld /bin/busybox /home/node | /bin/busybox cut -c1-10; echo x > /bin/busybox"}, runtime.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "/opt/tools\n\n1000\n/workspace\n-rwxr-xr-x\ndrwxr-xr-x\n"
	if string(res.Stdout) != want || res.ExitCode == 0 {
		t.Errorf("got %q %q, exit code %d", res.Stdout, res.Stderr, res.ExitCode)
	}
	if _, err := rt.Run(t.Context(), "1", runtime.RunOptions{}); !errors.Is(err, runtime.ErrUnsupported) {
		t.Errorf("Run: %v", err)
	}
	if _, err := rt.Exec(t.Context(), "1", runtime.RunOptions{}); !errors.Is(err, runtime.ErrUnsupported) {
		t.Errorf("Exec: %v", err)
	}
	o.Launcher = runtime.LauncherZygote
	if _, err := runtime.Create(t.Context(), o); !errors.Is(err, runtime.ErrUnsupported) || !strings.Contains(err.Error(), "no Node") {
		t.Errorf("zygote: %v", err)
	}
}

// A root file system with Node runs programs; a zygote it has if it's trusted.
func TestImportedNode(t *testing.T) {
	source := defaultImage(t).Root()
	for _, l := range launchers {
		for _, trust := range []bool{false, true} {
			if l == runtime.LauncherExec && trust {
				continue
			}
			t.Run(l.String()+map[bool]string{true: ", trusted"}[trust], func(t *testing.T) {
				o := ours(runtime.Options{Store: imported(t, source, rootfs.ImportOptions{TrustNode: trust})})
				o.Image, o.Launcher = "app", l
				if l == runtime.LauncherZygote && !trust {
					if _, err := runtime.Create(t.Context(), o); !errors.Is(err, runtime.ErrUnsupported) || !strings.Contains(err.Error(), "not trusted") {
						t.Errorf("error %v", err)
					}
					return
				}
				checkImportedNode(t, o)
			})
		}
	}
}

// unmerged packs the Node of the default image and its libraries as another image has
// them: Node somewhere behind a link, libraries in a /lib that is a folder.
func unmerged(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "unmerged.tar")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	root := defaultImage(t).Root()
	places := map[string]string{root + "/usr/local/bin/node": "opt/n/node"}
	for _, pattern := range []string{"/usr/lib64/*", "/usr/lib/*/*.so*", "/usr/lib/ld-*"} {
		for _, path := range glob(root + pattern) {
			places[path] = strings.TrimPrefix(path, root+"/usr/")
		}
	}
	for from, to := range places {
		content, err := os.ReadFile(from)
		if err == nil {
			err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: to, Mode: 0o755, Size: int64(len(content))})
		}
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "usr/bin/node", Linkname: "/opt/n/node"}), w.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}

// An image that is laid out in another way runs programs under all permissions.
func TestImportedUnmerged(t *testing.T) {
	source := unmerged(t)
	for _, l := range launchers {
		o := ours(runtime.Options{Store: imported(t, source, rootfs.ImportOptions{TrustNode: true})})
		o.Image, o.Launcher = "app", l
		for name, p := range map[string]policy.Permissions{"default": policy.Default(), "strict": policy.Strict()} {
			if name == "strict" { // exec must be allowed to start Node itself
				p.ChildProcess = policy.Scope{Default: policy.Allow}
			}
			o.Permissions = p
			res := run(t, createAs(t, o), "__return([process.execPath, process.version])", runtime.RunOptions{})
			if string(res.Value) != `["/opt/n/node","v`+rootfs.DefaultNode+`"]` {
				t.Errorf("%s, %s: %s %s", l, name, res.Value, res.Stderr)
			}
		}
	}
}

func checkImportedNode(t *testing.T, o runtime.Options) {
	rt := createAs(t, o)
	res := run(t, rt, "__return([process.version, process.getuid()])", runtime.RunOptions{})
	if string(res.Value) != `["v`+rootfs.DefaultNode+`",1000]` {
		t.Errorf("%s %s", res.Value, res.Stderr)
	}
	res, err := rt.Command(t.Context(), "node", []string{"-p", "1+1"}, runtime.RunOptions{})
	if err != nil || string(res.Stdout) != "2\n" {
		t.Errorf("%v, %+v", err, res)
	}
}
