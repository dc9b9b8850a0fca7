package flags

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"gaol/runtime"
)

func TestMountFlag(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		text string
		want runtime.Mount
	}{
		{"/a:/b", runtime.Mount{Source: "/a", Target: "/b"}},
		{"/a:/b:ro", runtime.Mount{Source: "/a", Target: "/b"}},
		{"/a:/b:rw", runtime.Mount{Source: "/a", Target: "/b", Access: runtime.ReadWrite}},
		{"/a/:/b:cow", runtime.Mount{Source: "/a", Target: "/b", Access: runtime.CopyOnWrite}},
		{"x:/b", runtime.Mount{Source: filepath.Join(here, "x"), Target: "/b"}},
		{"/a:b:/c", runtime.Mount{Source: "/a:b", Target: "/c"}},
		{"/a:/ro", runtime.Mount{Source: "/a", Target: "/ro"}},
	} {
		if got, err := parseMount(tc.text); err != nil || got != tc.want {
			t.Errorf("%q: %+v, %v; want %+v", tc.text, got, err, tc.want)
		}
	}
	for _, text := range []string{"", "/a", "/a:", ":/b", "/a:b", "/a:/b:x", "ro", "/a:rw", ":/b:ro"} {
		var f Sandbox
		if err := f.addMount(text); err == nil || f.options.Mounts != nil {
			t.Errorf("%q: %+v, %v; want an error", text, f.options.Mounts, err)
		}
	}
}

func TestFileFlag(t *testing.T) {
	host := filepath.Join(t.TempDir(), "a=b")
	if err := os.WriteFile(host, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := NewSandbox(&cobra.Command{}, "")
	if err := f.addFile("/etc/x=" + host); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "/x", "/x=", "x=" + host, "/etc/x=" + host, "/y=/nosuch", "/y=/dev/zero", "/y=/"} {
		if err := f.addFile(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	if diff := cmp.Diff(map[string][]byte{"/etc/x": []byte("text")}, f.options.Files); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
