package flags

import (
	"testing"

	"github.com/spf13/cobra"

	"gaol/runtime"
)

// The preset npm has room for packages, unless flags set the limits.
func TestPresetNpmLimits(t *testing.T) {
	usual := runtime.DefaultLimits()
	for _, tc := range []struct {
		args         []string
		disk, memory int64
	}{
		{nil, usual.Disk, usual.Memory},
		{[]string{"--preset", "npm"}, 4 << 30, 512 << 20},
		{[]string{"--disk", "1g", "--preset", "npm"}, 1 << 30, 512 << 20},
		{[]string{"--preset", "npm", "--memory", "256m"}, 4 << 30, 256 << 20},
		{[]string{"--preset", "workspace"}, usual.Disk, usual.Memory},
	} {
		cmd := &cobra.Command{}
		f := NewSandbox(cmd, "")
		f.AddLimits()
		f.AddEnvironment(cmd)
		if err := cmd.ParseFlags(tc.args); err != nil {
			t.Fatal(err)
		}
		if err := f.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l := f.Options().Limits; l.Disk != tc.disk || l.Memory != tc.memory {
			t.Errorf("%q: %+v", tc.args, l)
		}
	}
}
