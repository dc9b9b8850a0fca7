package runtime

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Limits bound the resources of a guest. Memory, CPUs, CPUTime, Pids, Files, Output and Value
// apply to each run separately; Disk and Inodes apply to the runtime, whose files outlive
// its runs. A zero field means the default; a negative one is an error.
//
// Node sees Memory and CPUs as the machine's, and sizes its heap by Memory: see
// docs/isolation.md.
type Limits struct {
	Memory  int64         // bytes of a run's memory, including the page cache of its files; default 256 MiB; swap is never used
	CPUs    float64       // processors that a run may keep busy; default 1
	CPUTime time.Duration // CPU time of all processes of a run together; default: no limit
	Pids    int64         // tasks (processes and threads) of a run; default 64
	Files   int64         // open files of a process (RLIMIT_NOFILE); default 1,024, or the hard limit of the host process if that is lower; more than that is a *HostLimitError
	Disk    int64         // bytes written to the tree; default 64 MiB
	Inodes  int64         // files and folders in the tree; default 16,384
	Output  int64         // captured bytes of stdout and of stderr; default 16 MiB each
	Value   int64         // bytes of the JSON text passed to __return; default 16 MiB
}

// DefaultTimeout is the time limit of a run whose RunOptions.Timeout is zero.
const DefaultTimeout = 30 * time.Second

// DefaultLimits returns the limits of a runtime whose Options.Limits are zero. CPUTime is
// zero: no limit.
func DefaultLimits() Limits {
	return Limits{
		Memory: 256 << 20,
		CPUs:   1,
		Pids:   64,
		Files:  1024,
		Disk:   64 << 20,
		Inodes: 16384,
		Output: 16 << 20,
		Value:  16 << 20,
	}
}

// The least values that a run works with.
const (
	minMemory = 48 << 20 // Node alone touches some 45 MB
	minPids   = 16       // Node alone has 7 threads, and 4 more once it reads a file
	minFiles  = 32       // Node alone has 20 open
	minDisk   = 64 << 10
	minInodes = 16
	minHeap   = 16 << 20 // includes Node's own modules
)

// LimitError reports that a field of Limits, or of a similar struct, is out of bounds.
type LimitError struct {
	Limit              string // the field's name
	Value, Least, Most float64
}

// byteLimits are the fields that count bytes.
var byteLimits = []string{"Memory", "Disk", "Output", "Value", "Heap", "MaxOutput", "BytesIn", "BytesOut"}

// Error names the field and its bounds, bytes in binary units.
func (e *LimitError) Error() string {
	if e.Limit == "CPUTime" { // without an upper bound
		return fmt.Sprintf("limit CPUTime: %v is negative", time.Duration(e.Value))
	}
	text := func(f float64) string {
		if slices.Contains(byteLimits, e.Limit) {
			return formatBytes(bytesOf(f))
		}
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprintf("limit %s: %s is not between %s and %s", e.Limit, text(e.Value), text(e.Least), text(e.Most))
}

// checkLimit returns a *LimitError if a value is out of bounds.
func checkLimit[N int | int64 | float64](name string, value, least, most N) error {
	if !(value >= least && value <= most) { // so that NaN fails
		return &LimitError{name, float64(value), float64(least), float64(most)}
	}
	return nil
}

// checkHeap checks the size of a heap; 0 is the default.
func checkHeap(size int64, l Limits) error {
	if size == 0 {
		return nil
	}
	return checkLimit("Heap", size, minHeap, oldSpaceMiB(l.Memory)<<20)
}

// bytesOf returns a number of bytes as an integer. Floating-point numbers round the greatest ones up, beyond int64.
func bytesOf(f float64) int64 {
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(f)
}

// formatBytes writes a number of bytes in the largest unit that divides it. go-units rounds,
// and so could not show why a value is out of bounds.
func formatBytes(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for n != 0 && n%1024 == 0 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return strconv.FormatInt(n, 10) + " " + units[i]
}

// orDefaults returns a struct with the fields of d instead of those that are zero.
func orDefaults[T any](given, d T) T {
	fields, defaults := reflect.ValueOf(&given).Elem(), reflect.ValueOf(d)
	for i := range fields.NumField() {
		if fields.Field(i).IsZero() {
			fields.Field(i).Set(defaults.Field(i))
		}
	}
	return given
}

func (l Limits) validate() error {
	const huge = 1 << 50 // so that sums do not overflow
	return errors.Join(
		checkLimit("Memory", l.Memory, minMemory, huge),
		checkLimit("Pids", l.Pids, minPids, 4<<20),    // PID_MAX_LIMIT
		checkLimit("Files", l.Files, minFiles, 1<<20), // fs.nr_open
		checkLimit("Disk", l.Disk, minDisk, huge),
		checkLimit("Inodes", l.Inodes, minInodes, huge),
		checkLimit("Output", l.Output, 1, 1<<30),
		checkLimit("Value", l.Value, 1, 1<<30),
		checkLimit("CPUTime", int64(l.CPUTime), 0, math.MaxInt64),
		checkLimit("CPUs", l.CPUs, 0.05, 4096), // with less, Node takes seconds to start
	)
}

// Limits returns the limits in force: Options.Limits, with the defaults for zero fields.
// Files is less than its default if the host process itself may have fewer open files.
func (rt *NodeRuntime) Limits() Limits { return rt.opts.Limits }

// HostLimitError reports that a field of Limits exceeds the host process's own limit.
type HostLimitError struct {
	Limit string // the field's name
	Value int64  // the requested value
	Most  int64  // the host process's limit
	Least int64  // the minimum for a run
}

// Error names the field, the limit of the host process, and how to raise it.
func (e *HostLimitError) Error() string {
	return fmt.Sprintf("limit %s: %d is more than %d, the hard limit of this process (RLIMIT_NOFILE); raise that with `ulimit -Hn`, or LimitNOFILE= of a service", e.Limit, e.Value, e.Most)
}

// fitHost is fit with the limit of this process.
func (l *Limits) fitHost(asked Limits) error {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("getrlimit: %w", err)
	}
	return l.fit(asked, files.Max)
}

// fit lowers the default of Files to the host process's limit, which runs inherit, and refuses a
// larger requested value.
func (l *Limits) fit(asked Limits, most uint64) error {
	if asked.Files == 0 && most < uint64(l.Files) {
		l.Files = max(int64(most), minFiles)
	}
	if uint64(l.Files) > most {
		return &HostLimitError{"Files", l.Files, int64(most), minFiles}
	}
	return nil
}
