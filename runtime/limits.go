package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/lazyregexp"
	"gaol/policy"
)

// Limits bound the resources of a guest. Memory, CPUs, CPUTime, Pids, OpenFiles, Output and
// Value apply to each run separately; Disk and Files apply to the runtime, whose files outlive
// its runs. A zero field means the default; a negative one is an error.
//
// Node sees Memory and CPUs as the machine's, and sizes its heap by Memory: see
// docs/isolation.md.
type Limits struct {
	Memory    int64         `bounds:"48MiB..1PiB,256MiB"`         // bytes of a run's memory, including the page cache of its files; default 256 MiB; swap is never used
	CPUs      float64       `bounds:"0.05..4096,1"`               // processors that a run may keep busy; default 1
	CPUTime   time.Duration `bounds:"0.."`                        // CPU time of all processes of a run together; default: no limit
	Pids      int64         `bounds:"16..4194304,64"`             // tasks (processes and threads) of a run; default 64
	OpenFiles int64         `bounds:"32..1048576,1024"`           // open files of a process (RLIMIT_NOFILE); default 1,024, or the hard limit of the host process if that is lower; no more than that limit
	Disk      int64         `bounds:"64KiB..1PiB,64MiB"`          // bytes written to the tree; default 64 MiB
	Files     int64         `bounds:"16..1125899906842624,65536"` // files and folders in the tree; default 65,536
	Output    int64         `bounds:"1B..1GiB,16MiB"`             // captured bytes of stdout and of stderr; default 16 MiB each
	Value     int64         `bounds:"1B..1GiB,16MiB"`             // bytes of the JSON text passed to __return; default 16 MiB
}

// The least values are those that a run works with: Node alone touches some 45 MB, has 7 threads, and 4 more
// once it reads a file, and has 20 files open. With less of a processor, it takes seconds to start. The greatest
// are the kernel's PID_MAX_LIMIT and fs.nr_open, or such that sums do not overflow. The default of Files has room for twice
// the packages of an application with Next.js, Vite, Vitest, ESLint and TypeScript (25,000 files, and 4,000 of npm's
// cache); so many files in memory take 56 MiB of it, which runs are charged for.
const (
	minOpenFiles = 32
	minHeap      = 16 << 20 // includes Node's own modules
)

// onDisk reports whether the tree is on disk: in memory it would count as a run's memory, which is for programs.
func (l Limits) onDisk() bool { return l.Disk > max(DefaultLimits().Disk, l.Memory/4) }

// DefaultTimeout is the time limit of a run whose RunOptions.Timeout is zero.
const DefaultTimeout = 30 * time.Second

// DefaultLimits returns the limits of a runtime whose Options.Limits are zero. CPUTime is
// zero: no limit.
func DefaultLimits() (l Limits) {
	_ = fill(&l, true)
	return l
}

// LimitError reports that a field of Limits, or of a similar struct, is out of bounds.
type LimitError struct {
	Limit              string // the field's name
	Value, Least, Most float64

	unit string // "B" for bytes, "s" for a time.Duration, "host" if Most is this process's own limit, or ""
}

// Error names the field and its bounds, bytes in binary units.
func (e *LimitError) Error() string {
	text := func(f float64) string {
		switch e.unit {
		case "B":
			return formatBytes(bytesOf(f))
		case "s":
			return time.Duration(f).String()
		}
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	switch {
	case e.unit == "host":
		return fmt.Sprintf("limit %s: %s is more than %s, the hard limit of this process (RLIMIT_NOFILE); raise that with `ulimit -Hn`, or LimitNOFILE= of a service", e.Limit, text(e.Value), text(e.Most))
	case e.Most == math.MaxInt64: // without an upper bound
		return fmt.Sprintf("limit %s: %s is less than %s", e.Limit, text(e.Value), text(e.Least))
	}
	return fmt.Sprintf("limit %s: %s is not between %s and %s", e.Limit, text(e.Value), text(e.Least), text(e.Most))
}

// checkBytes returns a *LimitError if a number of bytes is out of bounds.
func checkBytes(name string, value, least, most int64) error {
	if value < least || value > most {
		return &LimitError{name, float64(value), float64(least), float64(most), "B"}
	}
	return nil
}

// checkHeap checks the size of a heap; 0 is the default.
func checkHeap(size int64, l Limits) error {
	if size == 0 {
		return nil
	}
	return checkBytes("Heap", size, minHeap, oldSpaceMiB(l.Memory)<<20)
}

// fill sets the zero fields of a struct to their defaults, if withDefaults is set, and returns a *LimitError for
// each field that is out of bounds. The tag bounds of a field has the least value, the greatest or nothing, and
// the default, such as "48MiB..1PiB,256MiB".
func fill(v any, withDefaults bool) error {
	var errs []error
	s := reflect.ValueOf(v).Elem()
	for i := range s.NumField() {
		f, field := s.Field(i), s.Type().Field(i)
		tag, bounded := field.Tag.Lookup("bounds")
		if !bounded {
			continue
		}
		both, normal, _ := strings.Cut(tag, ",")
		least, most, _ := strings.Cut(both, "..")
		if f.IsZero() && withDefaults {
			f.Set(reflect.ValueOf(number(normal, 0)).Convert(f.Type()))
		}
		e := &LimitError{Limit: field.Name, Least: number(least, 0), Most: number(most, math.MaxInt64)}
		e.Value = f.Convert(reflect.TypeFor[float64]()).Float()
		switch {
		case strings.Contains(both, "B"):
			e.unit = "B"
		case f.Type() == reflect.TypeFor[time.Duration]():
			e.unit = "s"
		}
		if !(e.Value >= e.Least && e.Value <= e.Most) { // so that NaN fails
			errs = append(errs, e)
		}
	}
	return errors.Join(errs...)
}

// number parses a number in a tag, which may be a size or a time, or returns absent if there is none.
func number(text string, absent float64) float64 {
	if text == "" {
		return absent
	}
	if d, err := time.ParseDuration(text); err == nil {
		return float64(d)
	}
	digits := strings.TrimRight(text, "BKMGTPi")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		panic(err)
	}
	if exponent := slices.Index(units, text[len(digits):]); exponent > 0 {
		n *= math.Pow(1024, float64(exponent))
	}
	return n
}

var units = []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"}

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
	i := 0
	for n != 0 && n%1024 == 0 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return strconv.FormatInt(n, 10) + " " + units[i]
}

// Limits returns the limits in force: Options.Limits, with the defaults for zero fields.
// OpenFiles is less than its default if the host process itself may have fewer open files.
func (rt *NodeRuntime) Limits() Limits { return rt.opts.Limits }

// fitHost is fit with the limit of this process.
func (l *Limits) fitHost(asked Limits) error {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("getrlimit: %w", err)
	}
	return l.fit(asked, files.Max)
}

// fit lowers the default of OpenFiles to the host process's limit, which runs inherit, and refuses a
// larger requested value.
func (l *Limits) fit(asked Limits, most uint64) error {
	if asked.OpenFiles == 0 && most < uint64(l.OpenFiles) {
		l.OpenFiles = max(int64(most), minOpenFiles)
	}
	if uint64(l.OpenFiles) > most {
		return &LimitError{"OpenFiles", float64(l.OpenFiles), minOpenFiles, float64(most), "host"}
	}
	return nil
}

// leastFree is how many free bytes of a tree count as none: file systems need some for themselves.
const leastFree = 16 << 10

// noSpace matches the last message about a lack of space, with its line before it and Node's call after it.
var noSpace = lazyregexp.New(`(?is)^(?:.*\n)?([^\n]*)(no space left on device|file too large)(?:, (\w+))?`)

// newFile matches words for calls that need a file more, and few bytes: Node's, and in messages of other programs.
var newFile = lazyregexp.New(`(?i)create|mkdir|mkdtemp|open|touch|link|rename`)

// full returns denials for the limits of a tree that a failed run has reached, given the free bytes and files. Programs
// such as npm remove their files when they fail: if both are left, the last error in text decides.
func (l *Limits) full(disk, files int64, text string) (list []Denial) {
	d := Denial{Scope: policy.Limits, Source: SourceLimits}
	noDisk, noFiles := disk < leastFree, files <= 0
	if m := noSpace().FindStringSubmatch(text); m != nil && !noDisk && !noFiles {
		d.Source = SourceStderr
		switch call := cmp.Or(m[3], m[1]); {
		case strings.EqualFold(m[2], "file too large"):
		case newFile().MatchString(call):
			noFiles = true
		case m[3] == "": // unknown: the fuller one
			noFiles = float64(files)/float64(l.Files) < float64(disk)/float64(l.Disk)
		}
		noDisk = !noFiles
	}
	if noDisk {
		d.Operation, d.Target, d.Rule = "disk", formatBytes(l.Disk), "limits.diskBytes"
		list = append(list, d)
	}
	if noFiles {
		d.Operation, d.Target, d.Rule = "files", fmt.Sprint(l.Files), "limits.files"
		list = append(list, d)
	}
	return list
}

// addLimits adds denials for the limits that a failed run has reached, of the tree and of memory. If the kernel killed
// the run for memory, held is the number of those bytes that were files in memory: the tree, unless it is on disk. text is
// the end of the error that the run reported.
func (p *Process) addLimits(text string, held int64) {
	l := p.rt.opts.Limits
	if p.rt.opts.writesHost() {
		text = "" // the host's file system may be full instead
	}
	if disk, files, err := p.rt.sandbox.Free(); err == nil { // otherwise the runtime is closed
		for _, d := range l.full(disk, files, text) {
			p.denials.Add(d)
		}
	}
	if held >= l.Memory/8 && !l.onDisk() {
		target := fmt.Sprintf("%s, of which files in memory take %s", formatBytes(l.Memory), formatBytes(held>>20<<20))
		p.denials.Add(Denial{Scope: policy.Limits, Operation: "memory", Target: target, Rule: "limits.memoryBytes", Source: SourceLimits})
	}
}
