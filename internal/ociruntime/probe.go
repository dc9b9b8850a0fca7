package ociruntime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go/features"
	"golang.org/x/mod/semver"
	"golang.org/x/sys/unix"

	"gaol/internal/lazyregexp"
)

const probeTimeout = 20 * time.Second // of each command, which takes 10 ms

// oldest are the first versions that [Info] calls tested.
var oldest = map[string]string{Runc: "v1.2.0", Crun: "v1.8.0"}

// Info describes a runtime.
type Info struct {
	Name    string // runc, crun, or the name that another runtime reports
	Version string // such as 1.5.2; empty if the runtime prints it in another form

	Seccomp  bool // it was built with support for seccomp filters
	CgroupV1 bool
	CgroupV2 bool

	// Tested is true for runc 1.2 and crun 1.8, or later. gaol's tests use runc 1.5 and crun 1.8.
	Tested bool
}

// probed are results of [Probe]: fileID -> Info.
var probed sync.Map

// fileID changes when a file is replaced or written.
type fileID struct {
	path         string
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
}

// Probe executes a runtime's program to get its name, version and features. It caches the result until
// the file changes.
func Probe(ctx context.Context, path string) (Info, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Info{}, fmt.Errorf("OCI runtime %s: %w", path, err)
	}
	file := fileID{path, st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim}
	if known, ok := probed.Load(file); ok {
		return known.(Info), nil
	}
	info, err := probe(ctx, path)
	if err != nil {
		return Info{}, fmt.Errorf("OCI runtime %s: %w", path, err)
	}
	probed.Store(file, info)
	return info, nil
}

func probe(ctx context.Context, path string) (Info, error) {
	version, err := output(ctx, path, "--version")
	if err != nil {
		return Info{}, err
	}
	info := parseVersion(version)
	if info.Name == "" {
		info.Name = filepath.Base(path)
	}
	text, err := output(ctx, path, "features")
	if _, failed := errors.AsType[*exec.ExitError](err); failed && info.Name != Runc {
		info.withoutFeatures(version)
		return info, nil
	}
	if err == nil {
		err = info.parseFeatures(text)
	}
	return info, err
}

// versionLine matches the first line of the output of runc and crun. The suffix of the numbers varies:
// crun 1.21 between releases is 1.21.0.0.0.5-1b1d.
var versionLine = lazyregexp.New(`^([\w.-]+) version (\d+\.\d+(?:\.\d+)?)`)

func parseVersion(text []byte) (info Info) {
	found := versionLine().FindSubmatch(text)
	if found == nil {
		return Info{}
	}
	info.Name, info.Version = string(found[1]), string(found[2])
	first, known := oldest[info.Name]
	info.Tested = known && semver.Compare("v"+info.Version, first) >= 0
	return info
}

// withoutFeatures is for runtimes without the command features, such as crun 1.8.1 of Debian 12, which
// lists its build options below its version and supports both versions of cgroups.
func (info *Info) withoutFeatures(version []byte) {
	if info.Name == Crun {
		info.Seccomp, info.CgroupV1, info.CgroupV2 = bytes.Contains(version, []byte("+SECCOMP")), true, true
	}
}

// parseFeatures parses the output of the command features. Omitted features are unsupported.
func (info *Info) parseFeatures(text []byte) error {
	var f features.Features
	if err := json.Unmarshal(text, &f); err != nil {
		return fmt.Errorf("features: %w", err)
	}
	if f.Linux == nil {
		return nil
	}
	isTrue := func(b *bool) bool { return b != nil && *b }
	if s := f.Linux.Seccomp; s != nil {
		info.Seccomp = isTrue(s.Enabled)
	}
	if c := f.Linux.Cgroup; c != nil {
		info.CgroupV1, info.CgroupV2 = isTrue(c.V1), isTrue(c.V2)
	}
	return nil
}

// output executes a command of the runtime and returns its output. The program is the operator's, as [Find]
// checks, so that its output is not limited.
func output(ctx context.Context, path, command string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, command)
	cmd.WaitDelay = time.Second // its children may keep the pipes open
	text, err := cmd.Output()
	if err == nil {
		return text, nil
	}
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case failed && len(exit.Stderr) > 0:
		line, _, _ := bytes.Cut(bytes.TrimSpace(exit.Stderr), []byte("\n"))
		err = fmt.Errorf("%w: %.200q", err, line)
	}
	return nil, fmt.Errorf("%s: %w", command, err)
}
