package seccomp

import (
	"slices"
	"testing"

	libseccomp "github.com/seccomp/libseccomp-golang"
)

func TestRows(t *testing.T) {
	var seen map[string]bool
	check := func(r Row) {
		if r.Calls == "" || r.Reason == "" {
			t.Errorf("%+v lacks a name or a reason", r)
		}
		for name := range calls([]Row{r}) {
			if seen[name] {
				t.Errorf("%s is listed twice", name)
			}
			seen[name] = true
			// A name unknown on all architectures is misspelt and does nothing.
			if _, err := libseccomp.GetSyscallFromName(name); err != nil && newer[name] == 0 {
				t.Errorf("%s is not a system call", name)
			}
		}
	}
	for name, rows := range map[string][]Row{"GoRuntime": GoRuntime, "Egress": Egress} {
		seen = map[string]bool{}
		for _, r := range rows {
			check(r)
		}
		for _, call := range []string{"execve", "open", "openat", "connect", "bind", "listen", "sendmmsg", "ptrace", "kill"} {
			if seen[call] {
				t.Errorf("%s allows %s", name, call)
			}
		}
	}
	seen = map[string]bool{}
	for _, r := range Allowed {
		if slices.ContainsFunc(r.Refuse, func(r Refusal) bool { return r.Label != "" || r.PathArg != 0 }) {
			t.Errorf("%s: labels are for restrictions", r.Calls)
		}
		check(r)
	}
	for _, r := range Denied {
		if r.Refuse != nil {
			t.Errorf("%s: refusals in Denied", r.Calls)
		}
		check(r)
	}
	for _, name := range []string{"clone3", "openat2", "seccomp"} {
		if seen[name] {
			t.Errorf("%s must get ENOSYS", name)
		}
	}
}

// neither are calls known to the library that are in no table on purpose. They get ENOSYS.
var neither = map[string]string{
	"clone3":           "flags in memory, see doc.go",
	"openat2":          "a mode in memory, see noSetID",
	"seccomp":          "memory of filters that all of the machine shares, see noFilters",
	"remap_file_pages": "emulated by the kernel since Linux 4.0, unused",
	"sysfs":            "obsolete",
	"ustat":            "obsolete",
	"uselib":           "obsolete",
	"_sysctl":          "removed", "afs_syscall": "never implemented", "create_module": "removed", "epoll_ctl_old": "removed",
	"epoll_wait_old": "removed", "get_kernel_syms": "removed", "get_thread_area": "for 32-bit programs", "getpmsg": "never implemented",
	"putpmsg": "never implemented", "query_module": "removed", "security": "never implemented", "set_thread_area": "for 32-bit programs",
	"tuxcall": "never implemented", "vserver": "never implemented",
}

// TestEveryCallIsListed fails if a new libseccomp knows a call that is in no table. It logs
// calls that the library does not know.
func TestEveryCallIsListed(t *testing.T) {
	decided := map[string]bool{}
	for _, rows := range [][]Row{Allowed, Denied} {
		for name := range calls(rows) {
			decided[name] = true
			if _, err := libseccomp.GetSyscallFromName(name); err != nil {
				t.Logf("%s is unknown to this libseccomp; its number is %d", name, newer[name])
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
