package landlock

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// all are all known rights.
const all = IoctlDev<<1 - 1

func TestTables(t *testing.T) {
	var seen Access
	for _, r := range rights {
		if r.Name == "" || r.Reason == "" || r.ABI < 1 || r.ABI > len(versions) || seen&r.Bit != 0 {
			t.Errorf("want a name, a reason, a unique bit and an ABI: %+v", r)
		}
		seen |= r.Bit
	}
	if seen != all || seen != 1<<len(rights)-1 {
		t.Errorf("bits %#x", uint64(seen))
	}
	for i, v := range versions {
		if v.ABI != i+1 || v.Linux == "" || v.Adds == "" {
			t.Errorf("row %d: %+v", i, v)
		}
	}
}

func TestNeeds(t *testing.T) {
	for _, tc := range []struct {
		r     Ruleset
		abi   int
		linux string
		what  string
	}{
		{Ruleset{}, 0, "", ""},
		{Ruleset{Handled: ReadFile | Execute}, 1, "5.13", "execute"},
		{Ruleset{Handled: ReadFile | Refer}, 2, "5.19", "refer"},
		{Ruleset{Handled: Refer | Truncate}, 3, "6.2", "truncate"},
		{Ruleset{Handled: Truncate, ConnectTCP: &Ports{}}, 4, "6.7", "connect_tcp"},
		{Ruleset{Handled: all}, 5, "6.10", "ioctl_dev"},
		{Ruleset{Handled: all, Signals: true}, 6, "6.12", "signal scope"},
	} {
		if abi, linux, what := tc.r.Needs(); abi != tc.abi || linux != tc.linux || what != tc.what {
			t.Errorf("%+v: %d, %s, %s", tc.r, abi, linux, what)
		}
	}
}

// TestOldKernel uses older ABIs than the kernel's.
func TestOldKernel(t *testing.T) {
	r := &Ruleset{
		Handled:    ReadFile | Truncate,
		Rules:      []Rule{{Path: "/", Tree: true, Access: ReadFile | Truncate}},
		ConnectTCP: &Ports{},
		Signals:    true,
	}
	root := openRoot(t, t.TempDir())
	_, err := r.makeFor(5, root)
	if want := (ABIError{Have: 5, Need: 6, Linux: "6.12", What: "signal scope"}); !isABIError(err, want) {
		t.Errorf("got %v, want %v", err, &want)
	}
	const text = "landlock: truncate needs ABI 3, Linux 6.2 or later; this kernel has ABI 1"
	if _, err := (&Ruleset{Handled: Truncate}).makeFor(1, root); fmt.Sprint(err) != text {
		t.Errorf("%v, want %s", err, text)
	}
	r.Degraded = true
	for _, tc := range []struct {
		abi     int
		missing string
		access  Access
	}{
		{1, "truncate connect_tcp signal scope", ReadFile},
		{3, "connect_tcp signal scope", ReadFile | Truncate},
		{4, "signal scope", ReadFile | Truncate},
		{6, "", ReadFile | Truncate},
		{99, "", ReadFile | Truncate},
	} {
		got, err := r.fit(tc.abi)
		if err != nil || got.Handled != tc.access || got.Rules[0].Access != tc.access ||
			(got.ConnectTCP != nil) != (tc.abi >= 4) || got.Signals != (tc.abi >= 6) {
			t.Errorf("ABI %d: %+v, %v", tc.abi, got, err)
		}
		var names []string
		for _, n := range r.lacks(tc.abi) {
			names = append(names, n.what)
		}
		if missing := strings.Join(names, " "); missing != tc.missing {
			t.Errorf("ABI %d: %s, want %s", tc.abi, missing, tc.missing)
		}
	}
	if r.Handled != ReadFile|Truncate || r.Rules[0].Access != ReadFile|Truncate || !r.Signals {
		t.Errorf("fit changed the ruleset: %+v", r)
	}
	if _, err := (&Ruleset{Handled: Truncate, Degraded: true}).makeFor(1, root); !errors.Is(err, ErrNothing) {
		t.Errorf("only missing rights: %v", err)
	}
}

func isABIError(err error, want ABIError) bool {
	got, ok := errors.AsType[*ABIError](err)
	return ok && *got == want
}

func TestMakeErrors(t *testing.T) {
	needABI(t, 4)
	dir := tree(t)
	for name, target := range map[string]string{"link": "a", "a/link": "file", "a/dead": "none"} {
		if err := os.Symlink(target, dir+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string) Ruleset {
		return Ruleset{Handled: ReadFile, Rules: []Rule{{Path: path, Access: ReadFile}}}
	}
	for _, tc := range []struct {
		name string
		r    Ruleset
		want error // nil: any error
		text string
	}{
		{"nothing", Ruleset{}, ErrNothing, "denies nothing"},
		{"unknown right", Ruleset{Handled: 1 << 40}, unix.EINVAL, "landlock_create_ruleset"},
		{"no path", read(""), unix.ENOENT, "landlock: rule for : no such file"},
		{"folder", read("/a"), ErrFolder, "landlock: rule for /a: is a folder"},
		{"missing", read("/a/none"), unix.ENOENT, "rule for /a/none: no such file"},
		{"file as a folder", read("/a/file/x"), unix.ENOTDIR, "/a/file/x"},
		{"symbolic link", read("/a/link"), ErrSymlink, "landlock: rule for /a/link: a symbolic link is on the way"},
		{"symbolic link on the way", read("/link/file"), ErrSymlink, "/link/file"},
		{"dangling symbolic link", read("/a/dead"), ErrSymlink, "/a/dead"},
		{"zero byte", read("/a/fi\x00le"), unix.EINVAL, "/a/fi"},
		{"outside of the root", read("/../../../etc/passwd"), unix.ENOENT, "passwd"},
		{"more than is handled", Ruleset{Handled: ReadFile, Rules: []Rule{{Path: "/", Tree: true, Access: ReadFile | ReadDir}}},
			unix.EINVAL, "landlock: rule for /: invalid argument"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file, err := tc.r.Make(openRoot(t, dir))
			if err == nil {
				file.Close()
				t.Fatal("Make succeeded")
			}
			if tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("got %v, want %q", err, tc.text)
			}
		})
	}
}

func TestOptional(t *testing.T) {
	needRoot(t)
	needABI(t, 1)
	dir := tree(t)
	ruleset := makeBelow(t, dir, &Ruleset{Handled: ReadFile, Rules: []Rule{
		{Path: "/none", Access: ReadFile, Optional: true},
		{Path: "/a/file", Access: ReadFile, Optional: true},
	}})
	if got := under(t, ruleset, in(dir, "open", "a/file"), in(dir, "open", "b/file")); names(got) != "ok EACCES" {
		t.Error(names(got))
	}
	bad := Ruleset{Handled: ReadFile, Rules: []Rule{{Path: "/a", Access: ReadFile, Optional: true}}}
	if _, err := bad.Make(openRoot(t, dir)); !errors.Is(err, ErrFolder) {
		t.Errorf("an optional rule for a folder: %v", err)
	}
}

func TestManyRules(t *testing.T) {
	needABI(t, 4)
	r := &Ruleset{Handled: ReadFile, ConnectTCP: &Ports{}}
	for port := range uint16(4096) {
		r.ConnectTCP.Allowed = append(r.ConnectTCP.Allowed, port)
	}
	makeBelow(t, t.TempDir(), r)
}

func TestUnavailable(t *testing.T) {
	for errno, cure := range map[syscall.Errno]string{
		unix.ENOSYS:     "CONFIG_SECURITY_LANDLOCK=y",
		unix.EOPNOTSUPP: "lsm=",
		unix.EPERM:      "seccomp",
	} {
		err := unavailable(errno)
		if got, ok := errors.AsType[*UnavailableError](err); !ok || !errors.Is(err, errno) || !strings.Contains(got.Cure, cure) {
			t.Errorf("%v: %v", errno, err)
		}
	}
}
