package seccomp

import (
	"slices"
	"testing"

	libseccomp "github.com/seccomp/libseccomp-golang"
)

func TestRows(t *testing.T) {
	seen := map[string]bool{}
	check := func(r Row) {
		if r.Name == "" || r.Reason == "" {
			t.Errorf("%+v lacks a name or a reason", r)
		}
		if seen[r.Name] {
			t.Errorf("%s is listed twice", r.Name)
		}
		seen[r.Name] = true
		// A name unknown everywhere is misspelt, and denies or allows nothing.
		if _, err := libseccomp.GetSyscallFromName(r.Name); err != nil && newer[r.Name] == 0 {
			t.Errorf("%s is no system call", r.Name)
		}
	}
	for _, r := range Allowed {
		if slices.ContainsFunc(r.Refuse, func(r Refusal) bool { return r.Label != "" || r.Text != 0 }) {
			t.Errorf("%s: a label, for which nobody asks", r.Name)
		}
		check(r)
	}
	for _, r := range Denied {
		if r.Refuse != nil {
			t.Errorf("%s: refusals without a permission", r.Name)
		}
		check(r)
	}
	for _, name := range []string{"clone3", "openat2", "seccomp"} {
		if seen[name] {
			t.Errorf("%s must get ENOSYS", name)
		}
	}
}

// neither are calls that the library knows and that are in no table on purpose:
// they get ENOSYS.
var neither = map[string]string{
	"clone3":           "flags in memory, see doc.go",
	"openat2":          "a mode in memory, see noSetID",
	"seccomp":          "memory of filters that all of the machine shares, see noFilters",
	"remap_file_pages": "emulated by the kernel since Linux 4.0, unused",
	"sysfs":            "obsolete",
	"ustat":            "obsolete",
	"uselib":           "obsolete",
	"_sysctl":          "gone from the kernel", "afs_syscall": "never was", "create_module": "gone", "epoll_ctl_old": "gone",
	"epoll_wait_old": "gone", "get_kernel_syms": "gone", "get_thread_area": "of 32-bit programs", "getpmsg": "never was",
	"putpmsg": "never was", "query_module": "gone", "security": "never was", "set_thread_area": "of 32-bit programs",
	"tuxcall": "never was", "vserver": "never was",
}

// TestEveryCallIsDecided fails when a new libseccomp knows a call that nobody has
// thought about. It logs those that the library is too old for.
func TestEveryCallIsDecided(t *testing.T) {
	decided := map[string]bool{}
	for _, rows := range [][]Row{Allowed, Denied} {
		for _, r := range rows {
			decided[r.Name] = true
			if _, err := libseccomp.GetSyscallFromName(r.Name); err != nil {
				t.Logf("%s is unknown to this libseccomp, so %d was used", r.Name, newer[r.Name])
			}
		}
	}
	for nr := range libseccomp.ScmpSyscall(1024) {
		name, err := nr.GetName()
		if err == nil && !decided[name] && neither[name] == "" {
			t.Errorf("%s (%d) is in no table", name, nr)
		}
	}
}
