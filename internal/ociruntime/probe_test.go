package ociruntime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fake creates a runtime: shell commands for --version and for features.
func fake(t *testing.T, version, features string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fake")
	replace(t, path, version, features)
	return path
}

func replace(t *testing.T, path, version, features string) {
	t.Helper()
	script := "#!/bin/sh\ncase $1 in\n--version) " + version + ";;\nfeatures) " + features + ";;\nesac\n"
	if err := os.WriteFile(path+".new", []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

const (
	all  = `echo '{"linux": {"cgroup": {"v1": true, "v2": true}, "seccomp": {"enabled": true}}}'`
	none = `echo '{"linux": {"cgroup": {"v1": false}, "seccomp": {"enabled": false}}}'`
	fail = `echo 'unknown command' >&2; exit 1`
)

func TestProbe(t *testing.T) {
	for name, tc := range map[string]struct {
		version, features string
		want              Info
	}{
		"runc":                  {"echo runc version 1.5.2; echo spec: 1.3.0", all, Info{"runc", "1.5.2", true, true, true, true}},
		"runc without features": {"echo runc version 1.5.2", none, Info{"runc", "1.5.2", false, false, false, true}},
		"an empty object":       {"echo runc version 1.5.2", "echo {}", Info{"runc", "1.5.2", false, false, false, true}},
		"Debian's old runc":     {"echo runc version 1.1.5+ds1", all, Info{"runc", "1.1.5", true, true, true, false}},
		"runc 1.10":             {"echo runc version 1.10.0-rc.1", all, Info{"runc", "1.10.0", true, true, true, true}},
		"crun of git":           {"echo crun version 1.21.0.0.0.5-1b1d", all, Info{"crun", "1.21.0", true, true, true, true}},
		"crun 1.8":              {"echo crun version 1.8; echo +CAP +SECCOMP", fail, Info{"crun", "1.8", true, true, true, true}},
		"crun without seccomp":  {"echo crun version 1.8.1; echo +CAP +EBPF", fail, Info{"crun", "1.8.1", false, true, true, true}},
		"crun 1.7":              {"echo crun version 1.7.2; echo +SECCOMP", fail, Info{"crun", "1.7.2", true, true, true, false}},
		"another":               {"echo youki version 0.5.3", all, Info{"youki", "0.5.3", true, true, true, false}},
		"another form":          {"echo kata-runtime : 3.2.0", fail, Info{"fake", "", false, false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Probe(t.Context(), fake(t, tc.version, tc.features))
			if err != nil || got != tc.want {
				t.Errorf("%+v, %v, want %+v", got, err, tc.want)
			}
		})
	}
}

func TestProbeFails(t *testing.T) {
	const runc = "echo runc version 1.5.2"
	for name, tc := range map[string]struct{ version, features, want string }{
		"--version fails":      {"echo broken >&2; echo more >&2; exit 3", all, `--version: exit status 3: "broken"`},
		"features of runc":     {runc, fail, `features: exit status 1: "unknown command"`},
		"features not in JSON": {runc, "echo none", "features: invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			path := fake(t, tc.version, tc.features)
			info, err := Probe(t.Context(), path)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%+v, %v, want %q", info, err, tc.want)
			}
		})
	}
	if _, err := Probe(t.Context(), "/missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// A runtime that does not exit is killed.
func TestProbeCanceled(t *testing.T) {
	path := fake(t, `echo $$ >"$0.pid.new"; mv "$0.pid.new" "$0.pid"; exec sleep infinity`, all)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := Probe(ctx, path)
		done <- err
	}()
	var pid []byte
	for pid == nil {
		select {
		case err := <-done:
			t.Fatalf("it ended: %v", err)
		default:
			pid, _ = os.ReadFile(path + ".pid")
			time.Sleep(time.Millisecond)
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err == nil {
		t.Errorf("process %s is left", pid)
	}
}

// A runtime is executed again only after its file has changed, or after a failure.
func TestProbeRemembers(t *testing.T) {
	const count = `echo x >>"$0.count"; `
	path := fake(t, count+"exit 1", all)
	probe := func(calls int, version string) {
		t.Helper()
		info, err := Probe(t.Context(), path)
		if (err != nil) != (version == "") || info.Version != version {
			t.Errorf("%+v, %v, want version %q", info, err, version)
		}
		if text, err := os.ReadFile(path + ".count"); err != nil || len(text) != 2*calls {
			t.Errorf("%d calls, %v, want %d", len(text)/2, err, calls)
		}
	}
	probe(1, "")
	probe(2, "")
	replace(t, path, count+"echo runc version 1.5.1", all)
	probe(3, "1.5.1")
	probe(3, "1.5.1")
	replace(t, path, count+"echo runc version 1.5.2", all)
	probe(4, "1.5.2")
	probe(4, "1.5.2")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := Probe(t.Context(), path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after its removal: %v", err)
	}
}

// crun is what .ci/deps test installs. The runc of make build is tested by test/cli.
func TestProbeCrun(t *testing.T) {
	path, err := Find(Crun)
	if err != nil {
		t.Fatal(err)
	}
	info, err := Probe(t.Context(), path)
	if err != nil || info.Name != Crun || !info.Seccomp || !info.CgroupV1 || !info.CgroupV2 || !info.Tested {
		t.Errorf("%s: %+v, %v", path, info, err)
	}
}
