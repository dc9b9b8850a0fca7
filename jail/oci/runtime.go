package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Runtime is an OCI runtime: runc, or a program with its command line.
type Runtime struct {
	// Path is the host path of its program, which root executes.
	Path string

	// SystemdCgroup makes the runtime let systemd make the containers' cgroups.
	SystemdCgroup bool
}

// timeout limits a call of the runtime that neither creates nor starts anything.
const timeout = 10 * time.Second

// bases are the specs that runtimes print, by the identity of the runtime's program.
var bases sync.Map

// base returns the spec that the runtime prints, which the caller may modify.
func (r *Runtime) base(ctx context.Context) (*specs.Spec, error) {
	info, err := os.Stat(r.Path)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(r.Path, info.Size(), info.ModTime())
	text, ok := bases.Load(key)
	if !ok {
		if text, err = r.printBase(ctx); err != nil {
			return nil, err
		}
		bases.Store(key, text)
	}
	var s specs.Spec
	if err := json.Unmarshal(text.([]byte), &s); err != nil {
		return nil, fmt.Errorf("%s spec: %w", r.Path, err)
	}
	if s.Process == nil || s.Root == nil || s.Linux == nil {
		return nil, fmt.Errorf("%s spec: %w", r.Path, errors.New("no process, root or linux"))
	}
	return &s, nil
}

func (r *Runtime) printBase(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "gaol-oci-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cmd := exec.CommandContext(ctx, r.Path, "spec", "--bundle", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s spec: %w: %.200q", r.Path, err, out)
	}
	return os.ReadFile(filepath.Join(dir, "config.json"))
}

// command returns the arguments of a command of the runtime.
func (r *Runtime) command(dir string, args ...string) []string {
	global := []string{r.Path, "--root", filepath.Join(dir, stateDir), "--log", filepath.Join(dir, logFile), "--log-format", "json"}
	if r.SystemdCgroup {
		global = append(global, "--systemd-cgroup")
	}
	return append(global, args...)
}

// Names in the folder of a container.
const (
	stateDir   = "state"
	bundleDir  = "bundle"
	logFile    = "log"
	configFile = "config.json"
)

// logged returns the last error in a runtime's log, or err if there is none.
func logged(dir string, err error) error {
	text, readErr := readEnd(filepath.Join(dir, logFile))
	if readErr != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	var last struct{ Level, Msg string }
	if json.Unmarshal(lines[len(lines)-1], &last) != nil || last.Msg == "" {
		return err
	}
	const most = 1000
	return errors.New(strings.ToValidUTF8(last.Msg[:min(len(last.Msg), most)], "?"))
}

// readEnd reads the last 64 KiB of a file.
func readEnd(path string) ([]byte, error) {
	const most = 64 << 10
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-most), most))
}
