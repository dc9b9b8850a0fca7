package test

import (
	"slices"
	"strings"
	"testing"

	"gaol/runtime"
)

// denied is a place that permissions withhold.
type denied struct {
	Top   string   `json:"top"`
	Parts []string `json:"parts"`
	File  bool     `json:"file"`
	Ways  []string `json:"ways,omitempty"` // nil: all
}

// ways tries all of testdata/permission/around.mjs, and returns what came of each.
func ways(t *testing.T, rt *runtime.NodeRuntime, d denied, o runtime.RunOptions) map[string]string {
	t.Helper()
	o.Args = []string{text(t, d)}
	return value[map[string]string](t, rt, source(t, "around.mjs"), o)
}

// answers are those that a way of around.mjs has where the place is hidden by a mount,
// if not EACCES: it can't be moved (EBUSY), nor anything out of a folder that leads to it
// (EXDEV), and its mode is another's (EPERM).
func answers(way string) []string {
	switch {
	case strings.HasPrefix(way, "move "), strings.HasPrefix(way, "remove"), strings.HasPrefix(way, "anew, after"):
		return []string{"EBUSY", "EXDEV", "EACCES", "EISDIR"}
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

// Where a place in an allowed tree is denied, no way leads to it or around it.
func TestPermissionFSHidden(t *testing.T) {
	free := create(t, runtime.Options{})
	rt := create(t, runtime.Options{Permissions: fsRules(t, "allow", `{"mode":"deny","paths":[
		"/workspace/secret/**","/workspace/a/b/secret/**","/workspace/.env","/workspace/x/y/.env","/tmp/secret/**","/dev/shm/secret/**","/var/tmp/secret/**","/home/node/.npmrc"]}`)})
	for _, d := range []denied{
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
			for way, code := range ways(t, free, d, runtime.RunOptions{}) {
				if code != "" {
					t.Errorf("where it is allowed, %s: %s: this test proves nothing", way, code)
				}
			}
			for way, code := range ways(t, rt, d, runtime.RunOptions{}) {
				if want := answers(way); !slices.Contains(want, code) {
					t.Errorf("%s: %q, want one of %q", way, code, want)
				}
			}
		})
	}
}
