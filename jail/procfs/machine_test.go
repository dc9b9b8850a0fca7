package procfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestFormatStat(t *testing.T) {
	const want = `cpu  0 0 0 1000 0 0 0 0 0 0
cpu0 0 0 0 500 0 0 0 0 0 0
cpu3 0 0 0 500 0 0 0 0 0 0
intr 0
ctxt 0
btime 77
processes 0
procs_running 1
procs_blocked 0
softirq 0 0 0 0 0 0 0 0 0 0 0
`
	if diff := cmp.Diff(want, formatStat([]int{0, 3}, 5, 77)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The processors are the kernel's, and so is the boot time to within a second.
func TestMakeStat(t *testing.T) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	cpuinfo, err1 := readCPUInfo()
	processors, _ := limitProcessors(cpuinfo, 0)
	made, err2 := makeStat(processors)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	names := func(text string) (list []string) {
		for line := range strings.Lines(text) {
			if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(name, "cpu") {
				list = append(list, name)
			}
		}
		return list
	}
	if diff := cmp.Diff(names(string(text)), names(made)); diff != "" {
		t.Errorf("processors (-kernel +made):\n%s", diff)
	}
	boot := func(text string) int64 {
		_, rest, _ := strings.Cut(text, "\nbtime ")
		line, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if diff := boot(string(text)) - boot(made); diff < -1 || diff > 1 {
		t.Errorf("boot times differ by %d seconds", diff)
	}
}

// All files list as many processors as the limit, rounded up.
func TestLimitedProcessors(t *testing.T) {
	cpuinfo, err := readCPUInfo()
	if err != nil {
		t.Fatal(err)
	}
	all, _ := limitProcessors(cpuinfo, 0)
	for limit, want := range map[float64]int{0.05: 1, 1: 1, 1.5: 2, 4096: len(all)} {
		dir := t.TempDir()
		if err := Write(dir, Config{CPUs: limit}); err != nil {
			t.Fatal(err)
		}
		for name, pattern := range map[string]string{"stat": `(?m)^cpu\d+ `, "cpuinfo": `(?m)^processor\s*:`} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if got := len(regexp.MustCompile(pattern).FindAll(text, -1)); err != nil || got != min(want, len(all)) {
				t.Errorf("%v: %d processors in %s, %v, want %d", limit, got, name, err, want)
			}
		}
	}
}

func TestLimitProcessors(t *testing.T) {
	const text = "processor\t: 0\nflags\t: a\n\nprocessor\t: 3\n\nprocessor\t: 4\n\nHardware\t: x\n"
	const want = "processor\t: 0\nflags\t: a\n\nprocessor\t: 3\n\nHardware\t: x\n"
	for _, limit := range []float64{1.5, 2} {
		if numbers, got := limitProcessors(text, limit); got != want || !slices.Equal(numbers, []int{0, 3}) {
			t.Errorf("%v: %v of %q", limit, numbers, got)
		}
	}
	for _, limit := range []float64{0, 3, 2.5, 9} {
		if numbers, got := limitProcessors(text, limit); got != text || !slices.Equal(numbers, []int{0, 3, 4}) {
			t.Errorf("%v: %v of %q", limit, numbers, got)
		}
	}
}

func TestMakeMeminfo(t *testing.T) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	all := int64(info.Totalram) * int64(info.Unit)
	for limit, want := range map[int64]int64{256 << 20: 256 << 20, 0: all, 1 << 50: all} {
		got, err := makeMeminfo(limit)
		if first := fmt.Sprintf("MemTotal:       %8d kB\n", want>>10); err != nil || !strings.HasPrefix(got, first) {
			t.Errorf("%d bytes: %v, want first %s got %s", limit, err, first, got)
		}
	}
}
