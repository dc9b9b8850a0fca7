package doctor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/internal/ociruntime"
	"gaol/jail/cgroup"
)

// isolation is the name of an OCI runtime, which isolates by containers. The other checks are about the
// native one, which needs no runtime: no result of this probe is a failure of the machine.
type isolation string

func (i isolation) probe(x *examination) Check {
	name := string(i)
	path, err := ociruntime.Find(name)
	if errors.Is(err, exec.ErrNotFound) {
		return optional("not found", ociruntime.Cure(name))
	}
	var info ociruntime.Info
	if err == nil {
		info, err = ociruntime.Probe(x.ctx, path)
	}
	if err != nil {
		return optional(err.Error(), "repair that file, or replace it: "+ociruntime.Cure(name))
	}
	version, _ := cgroup.Detect() // probeCgroup reports the error
	return runtimeFinding(path, info, version, unifiedControllers("/sys/fs/cgroup"))
}

// runtimeFinding compares a runtime's features with gaol's requirements and this machine's
// cgroups. unified are the controllers of v2 on a machine that has both versions.
func runtimeFinding(path string, info ociruntime.Info, version cgroup.Version, unified []string) Check {
	detail := strings.TrimSpace(info.Name+" "+info.Version) + ", " + path
	supported := map[cgroup.Version]bool{cgroup.V1: info.CgroupV1, cgroup.V2: info.CgroupV2}
	switch {
	case !info.Seccomp:
		return optional(detail+", built without seccomp", `use a build with seccomp: "make build" builds such a runc`)
	case !supported[version]:
		return optional(detail+", which does not support this machine's cgroup "+version.String(), "use another version of it, or another runtime")
	case info.Name == ociruntime.Crun && version == cgroup.V1 && len(unified) > 0:
		return optional(detail+", which refuses a machine with cgroup v1 and v2 if v2 has controllers: "+strings.Join(unified, ", "),
			"boot with systemd.unified_cgroup_hierarchy=1, or use runc; if nothing needs cgroup v2: umount /sys/fs/cgroup/unified")
	case !info.Tested:
		return optional(detail+", a version with which gaol is not tested", `use runc 1.2, crun 1.8, or later: "make build" builds such a runc`)
	}
	return ok(fmt.Sprintf("%s, with seccomp and cgroup %s", detail, version))
}

// unifiedControllers returns the controllers of the v2 hierarchy that is mounted beside v1's. crun
// reads the same file, and only if a cgroup2 file system is mounted there.
func unifiedControllers(mountpoint string) []string {
	dir := filepath.Join(mountpoint, "unified")
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
		return nil
	}
	text, _ := os.ReadFile(filepath.Join(dir, "cgroup.controllers")) // every cgroup2 has it
	return strings.Fields(string(text))
}
