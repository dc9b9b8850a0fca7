package enter_test

import (
	"regexp"
	"strings"
	"testing"

	"gaol/jail/enter"
	"gaol/jail/zygote"
)

// Neither program has its own confinement code.
func TestSourceIsShared(t *testing.T) {
	for _, word := range []string{
		"setrlimit(", "TIOCSCTTY", "PR_CAPBSET_DROP", "SYS_setgroups", "SYS_setresgid", "PR_CAP_AMBIENT_CLEAR_ALL",
		"SYS_rt_sigaction", "PR_SET_NO_NEW_PRIVS", "SYS_landlock_restrict_self", "SECCOMP_SET_MODE_FILTER",
	} {
		if !strings.Contains(enter.ConfineSource, word) {
			t.Errorf("the source lacks %s", word)
		}
		for name, program := range map[string]string{"enter": enter.Source, "zygote": zygote.Source} {
			own := strings.Replace(program, enter.ConfineSource, "", 1)
			if own == program || strings.Contains(own, word) {
				t.Errorf("%s has %s outside the shared source", name, word)
			}
		}
	}
}

// The C library's functions that change ids signal all threads that it knows of. A
// zygote's child does not have them.
func TestSourceChangesIDsBySystemCalls(t *testing.T) {
	wrapper := regexp.MustCompile(`\bset(res|re|e|fs)?[ug]id\(|\b(set|init)groups\(`)
	for name, program := range map[string]string{"enter": enter.Source, "zygote": zygote.Source} {
		if call := wrapper.FindString(program); call != "" {
			t.Errorf("%s calls %s", name, call)
		}
	}
}
