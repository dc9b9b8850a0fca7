package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/rootfs"
)

func TestProbesAreComplete(t *testing.T) {
	names := map[string]bool{}
	for _, p := range probes() {
		if p.name == "" || p.run == nil || names[p.name] {
			t.Errorf("probe %q: want a name of its own and a function", p.name)
		}
		names[p.name] = true
	}
}

// TestExamine checks this machine. The findings vary, but each must be complete, and
// nothing may be left behind.
func TestExamine(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	before := mountTable(t)
	r := Examine(t.Context(), Options{Store: store, Program: func(context.Context, string) (string, error) {
		t.Error("the program was run, though it would have to build an image")
		return "", nil
	}})
	if len(r.Checks) != len(probes()) {
		t.Errorf("%d checks of %d probes", len(r.Checks), len(probes()))
	}
	allOK := true
	for _, c := range r.Checks {
		if c.Detail == "" || (c.Status == OK) != (c.Cure == "") {
			t.Errorf("want a detail, and a cure where something is wrong: %+v", c)
		}
		if strings.Contains(c.Detail+c.Cure, "\n") {
			t.Errorf("more than one line: %+v", c)
		}
		allOK = allOK && c.Status != Missing
	}
	if r.OK != allOK {
		t.Errorf("OK is %v", r.OK)
	}
	for _, m := range mountTable(t) {
		if !slices.Contains(before, m) {
			t.Errorf("new mount: %s", m)
		}
	}
	if _, err := os.Stat(store); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the store was made: %v", err)
	}
}

// mountTable returns the mounts of this process. It omits mounts of tests, which may run at the same time.
func mountTable(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	ofTests := func(m string) bool { return strings.Contains(m, "/gaol-test-") }
	return slices.DeleteFunc(strings.Split(string(text), "\n"), ofTests)
}

func TestExamineStopsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := Examine(ctx, Options{}); len(r.Checks) != 0 {
		t.Errorf("%d checks after the context's end", len(r.Checks))
	}
}

func TestProbePrograms(t *testing.T) {
	for _, tc := range []struct {
		name     string
		hasImage bool
		program  func(context.Context, string) (string, error)
		want     Status
		detail   string
	}{
		{"none", true, nil, Degraded, "not tried"},
		{"no image", false, func(context.Context, string) (string, error) { panic("not to be called") }, Degraded, "no image"},
		{"works", true, func(_ context.Context, isolation string) (string, error) { return "42 in " + isolation, nil }, OK, "42 in "},
		{"fails", true, func(_ context.Context, isolation string) (string, error) {
			return "", errors.New("gaol: create: x in " + isolation)
		}, Missing, "create: x in "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := &examination{ctx: t.Context(), options: Options{Program: tc.program}}
			if tc.hasImage {
				x.image = &rootfs.Image{}
			}
			check := func(got Check, want Status, isolation string) {
				t.Helper()
				detail := tc.detail
				if strings.HasSuffix(detail, " in ") {
					detail += isolation
				}
				if got.Status != want || !strings.Contains(got.Detail, detail) || strings.HasPrefix(got.Detail, "gaol:") || (got.Status == OK) != (got.Cure == "") {
					t.Errorf("got %+v, want %s with %q", got, want, detail)
				}
			}
			check(probeJail(x), tc.want, "native")
			optional := Optional // whatever is wrong
			if tc.want == OK {
				optional = OK
			}
			check(withOCI("crun")(x), optional, "crun")
		})
	}
}

func TestProbeRoot(t *testing.T) {
	if got := probeRoot(&examination{root: true}); got.Status != OK || got.Detail != "the mount namespace's own" {
		t.Errorf("got %+v", got)
	}
	if got := asRoot(probeRoot)(&examination{}); got.Status != Degraded {
		t.Errorf("without root: %+v", got)
	}
}

func TestNamespaceCure(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"user", unix.ENOSPC, "sysctl -w user.max_user_namespaces=65536"},
		{"network", unix.ENOSPC, "sysctl -w user.max_net_namespaces=65536"},
		{"mount", unix.EUSERS, "sysctl -w user.max_mnt_namespaces=65536"},
		{"pid", unix.EINVAL, "CONFIG_PID_NS=y"},
		{"user", unix.EPERM, "as root"},
		{"user", errors.New("anything else"), "--privileged"},
	} {
		for _, n := range namespaces {
			if n.name == tc.name && !strings.Contains(n.cure(tc.err), tc.want) {
				t.Errorf("%s, %v: %q, want %q in it", n.name, tc.err, n.cure(tc.err), tc.want)
			}
		}
	}
}

func TestNamespaceError(t *testing.T) {
	if err := tryNamespace(unix.CLONE_NEWNS | unix.CLONE_FS); !errors.Is(err, unix.EINVAL) {
		t.Errorf("clone(2) rejects these flags: %v", err)
	}
}

func TestNearestExisting(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct{ path, want string }{
		{dir, dir},
		{dir + "/a/b/c", dir},
		{"/nonexistent/x", "/"},
	} {
		if got := nearestExisting(tc.path); got != tc.want {
			t.Errorf("nearestExisting(%s) = %s, want %s", tc.path, got, tc.want)
		}
	}
}

func TestText(t *testing.T) {
	r := &Report{Checks: []Check{
		{"kernel", OK, "6.1", ""},
		{"a longer name", Degraded, "half", "do this"},
		{"cgroup", Missing, "none", "do that"},
		{"isolation", Optional, "not found", "install it"},
	}}
	const want = `ok        kernel         6.1
degraded  a longer name  half
                         cure: do this
missing   cgroup         none
                         cure: do that
optional  isolation      not found
                         cure: install it

gaol can't run here: 1 missing, 1 degraded
`
	if got := r.Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.Checks = []Check{r.Checks[0], r.Checks[3]}
	if got := r.Text(); !strings.HasSuffix(got, "\ngaol can run here\n") {
		t.Errorf("an optional check is counted: %s", got)
	}
}
