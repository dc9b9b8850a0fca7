package doctor

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gaol/jail/cgroup"
)

// filesV2 were added to cgroup v2 over time; gaol works without them, with less.
var filesV2 = []struct{ name, since, instead string }{
	{"cgroup.kill", "5.14", "a run is ended by killing its processes one by one"},
	{"memory.peak", "5.19", "the peak memory of a run is not known"},
	{"pids.peak", "6.1", "the peak number of a run's processes is not known"},
}

// checkFilesV2 looks for filesV2 in any group: the root group has none of them.
func checkFilesV2(version cgroup.Version) Check {
	detail := version.String() + ", with the controllers gaol uses"
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs") // fails only for an invalid pattern
	if version != cgroup.V2 || len(groups) == 0 {
		return ok(detail)
	}
	for _, f := range filesV2 {
		if found, _ := filepath.Glob("/sys/fs/cgroup/*/" + f.name); len(found) == 0 {
			return degraded(detail+", but no "+f.name+": "+f.instead, "boot a kernel of version "+f.since+" or later")
		}
	}
	return ok(detail)
}

func probeCgroup(x *examination) Check {
	version, err := cgroup.Detect()
	if err == nil {
		return checkFilesV2(version)
	}
	if m, isMissing := errors.AsType[*cgroup.MissingError](err); isMissing {
		return missing("no "+strings.Join(m.Controllers, ", ")+" below "+m.Path, m.Cure)
	}
	if r, readOnly := errors.AsType[*cgroup.ReadOnlyError](err); readOnly {
		err = fmt.Errorf("%s can't be written: %w", r.Path, r.Err)
	}
	if !x.root {
		return missing(err.Error(), "run gaol as root: sudo gaol ...")
	}
	return missing(err.Error(), "in a container, mount /sys/fs/cgroup writable (docker run --privileged --cgroupns=private)")
}
