package harness

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
)

// Glob lists the files that match any of the patterns.
func Glob(patterns ...string) []string {
	var all []string
	for _, p := range patterns {
		found, _ := filepath.Glob(p)
		all = append(all, found...)
	}
	return all
}

// Lines reads a file's lines. A file that does not exist, such as one of a process that
// has ended, is one empty line.
func Lines(path string) []string {
	text, _ := os.ReadFile(path)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// OpenDescriptors counts the file descriptors of this process.
func OpenDescriptors() int {
	fds, _ := os.ReadDir("/proc/self/fd")
	return len(fds)
}

// ProcessStatus reads /proc/PID/status. The map is empty if the process does not exist.
func ProcessStatus(pid string) map[string]string {
	status := map[string]string{}
	for _, line := range Lines("/proc/" + pid + "/status") {
		name, value, _ := strings.Cut(line, ":")
		status[name] = strings.TrimSpace(value)
	}
	return status
}

// Reapers lists the live reapers, pid 1, of this process's sandboxes. The parent of one in a container
// is a supervisor, which is a child of this process. In gVisor, which ends with its runsc, it lists that.
func Reapers() (pids []int) {
	self := strconv.Itoa(os.Getpid())
	for _, dir := range Glob("/proc/[0-9]*") {
		status := ProcessStatus(filepath.Base(dir))
		ids := strings.Fields(status["NSpid"])
		isReaper := status["Name"] == "catatonit" && len(ids) > 1 || status["Name"] == "runsc" && status["PPid"] == self
		if !isReaper || strings.HasPrefix(status["State"], "Z") {
			continue
		}
		if parent := status["PPid"]; parent != self && ProcessStatus(parent)["PPid"] != self {
			continue
		}
		if pid, err := strconv.Atoi(ids[0]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ProcNumber reads the number after a name in a file of /proc. In /proc/cgroups, whose
// lines are name, hierarchy, number of cgroups, it reads the number of cgroups.
func ProcNumber(t testing.TB, path, name string) int64 {
	t.Helper()
	for _, line := range Lines(path) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != name {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		if path == "/proc/cgroups" {
			n, err = strconv.ParseInt(fields[2], 10, 64)
		}
		if err == nil {
			return n
		}
	}
	t.Fatalf("%s has no %s", path, name)
	return 0
}

// LiveHeap is the size of this process's heap after a garbage collection. Resident memory
// would include free memory that Go keeps.
func LiveHeap() (bytes int64) {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// RetainedHeap is LiveHeap without the objects that a sync.Pool keeps for one more collection.
func RetainedHeap() int64 {
	LiveHeap()
	return LiveHeap()
}
