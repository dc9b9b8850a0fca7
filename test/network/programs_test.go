package network

import (
	"bytes"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/internettest"
)

const (
	host   = "api.example.com" // of all servers
	caFile = "/ca.pem"         // the authority's certificate in the jails
)

var address = netip.MustParseAddr("93.184.215.14")

// newInternet makes an internet with one host, and returns the authority of its certificates.
func newInternet(t *testing.T) *internettest.Authority {
	t.Helper()
	internettest.ServeNames(t, map[string][]netip.Addr{host: {address}, "other.test": {address}})
	return internettest.NewAuthority(t)
}

// serve serves HTTP and HTTPS on all of the host's usual ports.
func serve(t *testing.T, ca *internettest.Authority, server *http.Server) {
	t.Helper()
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{ca.Certificate(t, host)}}
	server.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust the authority
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)
	var serving sync.WaitGroup
	for _, port := range []uint16{80, 443} {
		l, err := net.Listen("tcp", netip.AddrPortFrom(address, port).String())
		if err != nil {
			t.Fatal(err)
		}
		serving.Go(func() {
			if port == 80 {
				_ = server.Serve(l)
			} else {
				_ = server.ServeTLS(l, "", "")
			}
		})
	}
	t.Cleanup(func() { server.Close(); serving.Wait() })
}

// options are those of a runtime that reaches the host by name, on its usual ports.
func options(ca *internettest.Authority, l runtime.Launcher, mounts ...runtime.Mount) runtime.Options {
	o := harness.Options(runtime.Options{
		Permissions: policy.Permissions{Network: policy.Scope{Rules: []policy.Rule{{Mode: policy.Allow, Patterns: []string{"tcp://" + host + ":80,443"}}}}},
		Mounts:      append(mounts, runtime.Mount{Source: ca.File, Target: caFile}),
		Env:         map[string]string{"CA": caFile},
	})
	o.Launcher = l
	return o
}

// perLauncher runs a test with each launcher.
func perLauncher(t *testing.T, f func(*testing.T, runtime.Launcher)) {
	for _, l := range harness.SomeLaunchers() {
		t.Run(l.String(), func(t *testing.T) { f(t, l) })
	}
}

// plain runs a program of the default image outside of a jail, and returns its output. Its
// variables are those of a jail, and variables.
func plain(t *testing.T, dir string, variables []string, program string, args ...string) string {
	t.Helper()
	root := harness.DefaultImage(t).Root()
	if program == "npm" {
		program, args = "node", append([]string{filepath.Join(root, "usr/local/lib/node_modules/npm/bin/npm-cli.js")}, args...)
	}
	bin := filepath.Join(root, "usr/local/bin")
	if program == "node" {
		program = filepath.Join(bin, program)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "LANG=C.UTF-8"}, variables...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

// command runs a program of the image in a jail. It must succeed.
func command(t *testing.T, rt *runtime.NodeRuntime, env map[string]string, name string, args ...string) string {
	t.Helper()
	return harness.Output(t, rt, runtime.RunOptions{Env: env, Timeout: -1}, name, args...)
}

// compare runs a program of testdata in jails, with each launcher, and outside. All must
// print the same.
func compare(t *testing.T, ca *internettest.Authority, file string, args ...string) {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	want := plain(t, t.TempDir(), []string{"CA=" + ca.File}, "node", append([]string{path}, args...)...)
	if want == "" {
		t.Fatalf("%s prints nothing", file)
	}
	perLauncher(t, func(t *testing.T, l runtime.Launcher) {
		rt := harness.CreateExact(t, options(ca, l))
		res := harness.Run(t, rt, string(code), runtime.RunOptions{Args: args, Name: file})
		if got := string(res.Stdout); got != want || res.ExitCode != 0 || res.Launcher != l {
			t.Errorf("%s by %s (%s): exit code %d, cause %q, stderr %s\ngot\n%swant\n%s", file, res.Launcher, res.LauncherReason, res.ExitCode, res.Cause, res.Stderr, got, want)
		}
	})
}
