package host

import (
	"archive/tar"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/policy"
	"gaol/rootfs"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// An image without Node runs commands, as an ordinary guest.
func TestImportedWithoutNode(t *testing.T) {
	o := harness.Options(runtime.Options{Store: harness.ImportImage(t, harness.BusyboxImage(t), rootfs.ImportOptions{})})
	o.Image, o.Launcher = "app", runtime.LauncherExec
	rt := harness.CreateExact(t, o)
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
	if !harness.Needs(t, runtime.FeatureZygote) {
		return
	}
	o.Launcher = runtime.LauncherZygote
	if _, err := runtime.Create(t.Context(), o); !errors.Is(err, runtime.ErrUnsupported) || !strings.Contains(err.Error(), "lacks Node") {
		t.Errorf("zygote: %v", err)
	}
}

// An imported file system with Node runs programs, and by a zygote if it is trusted.
func TestImportedNode(t *testing.T) {
	tier.Soak(t)
	source := harness.DefaultImage(t).Root()
	for _, trust := range []bool{false, true} {
		store := harness.ImportImage(t, source, rootfs.ImportOptions{TrustNode: trust})
		for _, l := range harness.Launchers {
			if l == runtime.LauncherExec && trust {
				continue
			}
			t.Run(l.String()+map[bool]string{true: ", trusted"}[trust], func(t *testing.T) {
				o := harness.Options(runtime.Options{Store: store})
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

// unmerged packs the Node of the default image and its libraries in another layout: Node
// behind a link, and libraries in a /lib that is a folder.
func unmerged(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "unmerged.tar")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	root := harness.DefaultImage(t).Root()
	places := map[string]string{root + "/usr/local/bin/node": "opt/n/node"}
	for _, pattern := range []string{"/usr/lib64/*", "/usr/lib/*/*.so*", "/usr/lib/ld-*"} {
		for _, path := range harness.Glob(root + pattern) {
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

// An image with another layout runs programs under all permissions.
func TestImportedUnmerged(t *testing.T) {
	tier.Soak(t)
	store := harness.ImportImage(t, unmerged(t), rootfs.ImportOptions{TrustNode: true})
	for _, l := range harness.Launchers {
		o := harness.Options(runtime.Options{Store: store})
		o.Image, o.Launcher = "app", l
		for name, p := range map[string]policy.Permissions{"default": policy.Default(), "strict": policy.Strict()} {
			if name == "strict" { // the exec launcher needs permission to start Node
				p.ChildProcess = policy.Scope{Default: policy.Allow}
			}
			o.Permissions = p
			res := harness.Run(t, harness.CreateExact(t, o), "__return([process.execPath, process.version])", runtime.RunOptions{})
			if string(res.Value) != `["/opt/n/node","v`+rootfs.DefaultNode+`"]` {
				t.Errorf("%s, %s: %s %s", l, name, res.Value, res.Stderr)
			}
		}
	}
}

func checkImportedNode(t *testing.T, o runtime.Options) {
	rt := harness.CreateExact(t, o)
	res := harness.Run(t, rt, "__return([process.version, process.getuid()])", runtime.RunOptions{})
	if string(res.Value) != `["v`+rootfs.DefaultNode+`",1000]` {
		t.Errorf("%s %s", res.Value, res.Stderr)
	}
	res, err := rt.Command(t.Context(), "node", []string{"-p", "1+1"}, runtime.RunOptions{})
	if err != nil || string(res.Stdout) != "2\n" {
		t.Errorf("%v, %+v", err, res)
	}
}
