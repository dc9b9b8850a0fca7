package flags

import (
	"testing"

	"github.com/spf13/cobra"

	"gaol/runtime"
)

func TestRejectedValueKeepsTarget(t *testing.T) {
	n := int64(7)
	for _, text := range []string{"", "0", "x"} {
		if err := Size(&n).Set(text); err == nil || n != 7 {
			t.Errorf("%q: %d, %v; want an error and no change", text, n, err)
		}
	}
}

func TestLauncher(t *testing.T) {
	for text, want := range map[string]string{"exec": "exec", "zygote": "zygote", "both": "", "": "", "Exec": ""} {
		var launcher runtime.Launcher
		cmd := &cobra.Command{}
		Launchers.Add(cmd, &launcher, "launcher", "")
		flag := cmd.Flags().Lookup("launcher").Value
		if err := flag.Set(text); (err == nil) != (want != "") || err == nil && (flag.String() != want || launcher.String() != want) {
			t.Errorf("%q: %v, %v; want %q", text, launcher, err, want)
		}
	}
}
