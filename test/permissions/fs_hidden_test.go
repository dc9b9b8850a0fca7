package permissions

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// withheld is a place that permissions withhold.
type withheld struct {
	Top   string   `json:"top"`
	Parts []string `json:"parts"`
	File  bool     `json:"file"`
	Ways  []string `json:"ways,omitempty"` // nil: all
}

// tryWays tries all of testdata/around.mjs, and returns the results.
func tryWays(t *testing.T, rt *runtime.NodeRuntime, d withheld, o runtime.RunOptions) map[string]string {
	t.Helper()
	o.Args = []string{text(t, d)}
	return value[map[string]string](t, rt, source(t, "around.mjs"), o)
}

// hiddenAnswers are the results of around.mjs, other than EACCES, for a place that a mount
// hides: it cannot be moved (EBUSY), nor can anything be moved out of a folder that leads
// to it (EXDEV), and its mode belongs to another user (EPERM).
func hiddenAnswers(way string) []string {
	switch {
	case strings.HasPrefix(way, "move "), strings.HasPrefix(way, "remove"), strings.HasPrefix(way, "anew, after"):
		return []string{"EBUSY", "EXDEV", "EACCES", "EISDIR", "EPERM"}
	case way == "a link for it", way == "anew, of the other kind":
		return []string{"EEXIST", "EISDIR", "EACCES"}
	case way == "a hard link":
		return []string{"EXDEV", "EACCES"}
	case way == "read in a grandchild":
		return []string{"nothing"}
	case strings.HasPrefix(way, "chmod"), way == "utimes":
		return []string{"EPERM"}
	}
	return []string{"EACCES"}
}

// A denied place in an allowed tree cannot be reached in any way.
func TestPermissionFSHidden(t *testing.T) {
	free := harness.Create(t, runtime.Options{})
	rt := harness.Create(t, runtime.Options{Permissions: fsRules(t, "allow", `{"mode":"deny","paths":[
		"/workspace/secret/**","/workspace/a/b/secret/**","/workspace/.env","/workspace/x/y/.env","/tmp/secret/**","/dev/shm/secret/**","/var/tmp/secret/**","/home/node/.npmrc"]}`)})
	for _, d := range []withheld{
		{"/workspace", []string{"secret"}, false, nil},
		{"/workspace", []string{"a", "b", "secret"}, false, nil},
		{"/workspace", []string{".env"}, true, nil},
		{"/workspace", []string{"x", "y", ".env"}, true, nil},
		{"/tmp", []string{"secret"}, false, nil},
		{"/dev/shm", []string{"secret"}, false, nil},
		{"/var/tmp", []string{"secret"}, false, nil},
		{"/home/node", []string{".npmrc"}, true, nil},
	} {
		t.Run(d.Top+" "+d.Parts[0], func(t *testing.T) {
			for way, code := range tryWays(t, free, d, runtime.RunOptions{}) {
				if code != "" {
					t.Errorf("where it is allowed, %s: %s: this test proves nothing", way, code)
				}
			}
			for way, code := range tryWays(t, rt, d, runtime.RunOptions{}) {
				if want := hiddenAnswers(way); !slices.Contains(want, code) {
					t.Errorf("%s: %q, want one of %q", way, code, want)
				}
			}
		})
	}
}

// The same holds if the working directory is a folder of the image, whose files then belong
// to the guest.
func TestPermissionFSHiddenInImage(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Cwd: "/etc", Permissions: fsRules(t, "allow", `{"mode":"deny","paths":["/etc/secret/**","/etc/group","/etc/a/b/secret/**"]}`)})
	for _, d := range []withheld{
		{Top: "/etc", Parts: []string{"secret"}}, {Top: "/etc", Parts: []string{"group"}, File: true}, {Top: "/etc", Parts: []string{"a", "b", "secret"}},
	} {
		free := harness.Create(t, runtime.Options{Cwd: "/etc"})
		for way, code := range tryWays(t, free, d, runtime.RunOptions{}) {
			if code != "" {
				t.Errorf("where it is allowed, %s, %s: %s: this test proves nothing", d.Parts, way, code)
			}
		}
		for way, code := range tryWays(t, rt, d, runtime.RunOptions{}) {
			if want := hiddenAnswers(way); !slices.Contains(want, code) {
				t.Errorf("%s, %s: %q, want one of %q", d.Parts, way, code, want)
			}
		}
	}
}

// The start of a run does not bypass it either: no run starts in a hidden folder, and no
// hidden or non-executable program can be started.
func TestPermissionFSStarts(t *testing.T) {
	hidden := harness.Create(t, runtime.Options{Permissions: fsRules(t, "allow", `{"mode":"deny","paths":["/workspace/secret/**","/usr/bin/busybox"]}`)})
	free := harness.Create(t, runtime.Options{})
	put(t, free, "/workspace/secret/calls", static(t, "calls"))
	noExecute := fsRules(t, "allow", `{"mode":"deny","operations":["execute"],"paths":["/**"]}`)
	noRead := fsRules(t, "allow", `{"mode":"deny","operations":["read"],"paths":["/**"]}`)
	for _, tc := range []struct {
		name, program string
		rt            *runtime.NodeRuntime
		o             runtime.RunOptions
		allowed       bool
	}{
		{"free", "/workspace/secret/calls", free, runtime.RunOptions{}, true},
		{"free, there", "calls", free, runtime.RunOptions{Cwd: "/workspace/secret", Env: map[string]string{"PATH": "/workspace/secret"}}, true},
		{"a hidden program", "/workspace/secret/calls", hidden, runtime.RunOptions{}, false},
		{"a hidden program of the image", "/usr/bin/busybox", hidden, runtime.RunOptions{}, false},
		{"in a hidden folder", "/usr/local/bin/node", hidden, runtime.RunOptions{Cwd: "/workspace/secret"}, false},
		{"not executable for a run", "/workspace/secret/calls", free, runtime.RunOptions{Permissions: noExecute}, false},
		{"not readable for a run", "/workspace/secret/calls", free, runtime.RunOptions{Permissions: noRead}, false},
	} {
		if !tc.o.Permissions.IsZero() && !harness.Needs(t, runtime.FeatureLandlock) {
			continue
		}
		res, err := tc.rt.Command(t.Context(), tc.program, nil, tc.o)
		if tc.allowed && (err != nil || res.ExitCode != 0) || !tc.allowed && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %+v, %v", tc.name, res, err)
		}
	}
	if res, err := hidden.Run(t.Context(), ``, runtime.RunOptions{Cwd: "/workspace/secret"}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a run in a hidden folder: %+v, %v", res, err)
	}
}
