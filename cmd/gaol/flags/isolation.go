package flags

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"gaol/runtime"
)

// isolations are the names that a shell completes.
var isolations = []string{"native", "runc", "crun", "oci=/"}

// AddIsolation defines --isolation for what the usage calls confined.
func AddIsolation(cmd *cobra.Command, name *string, confined string) {
	cmd.Flags().StringVar(name, "isolation", "native", "`NAME` of what confines "+confined+": native, or a container of runc, crun or oci=/path, the program of an OCI runtime; runc+systemd lets systemd make its cgroup")
	Complete(cmd, "isolation", cobra.FixedCompletions(isolations, cobra.ShellCompDirectiveNoFileComp))
}

// ParseIsolation parses the value of --isolation.
func ParseIsolation(name string) (runtime.Isolation, runtime.OCIOptions, error) {
	if name == "" {
		return 0, runtime.OCIOptions{}, errors.New("--isolation is empty")
	}
	kind, oci, err := runtime.ParseIsolation(name)
	if err != nil {
		err = fmt.Errorf("--%w", err)
	}
	return kind, oci, err
}

// checkIsolation reads --isolation. That of a sandbox on a server is one of the server's names.
func (f *Sandbox) checkIsolation() (err error) {
	if f.Server != "" {
		return CheckNotEmpty(f.Set, "isolation")
	}
	o := &f.options
	if o.Isolation, o.OCI, err = ParseIsolation(f.isolation); err != nil {
		return err
	}
	if o.Isolation != runtime.IsolationNative && o.Launcher == runtime.LauncherZygote {
		return fmt.Errorf("--launcher zygote needs --isolation native, not %s", f.isolation)
	}
	return nil
}

// ServerIsolation returns the value of --isolation for a server, or "" for the server's default.
func (f *Sandbox) ServerIsolation() string {
	if !f.Set.Changed("isolation") {
		return ""
	}
	return f.isolation
}
