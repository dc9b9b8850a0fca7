package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/cmd/gaol/source"
	"gaol/policy"
	"gaol/runtime"
)

const policyLong = `Permissions say what a program may do: JSON with the scopes fs, network,
childProcess, process and env, each "allow", "deny" or a default and rules.

  {
    "network": "deny",
    "fs": {
      "default": "allow",
      "rules": [{"mode": "deny", "paths": ["/workspace/secret/**"]}]
    }
  }

The kernel enforces every rule, or gaol refuses it. gaol run takes permissions with
--permissions, and named ones with --preset.`

func (a *app) policyCommand() *cobra.Command {
	schema := &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON Schema of permissions, for editors and models",
		Args:  usageArgs(noArgs),
		RunE:  func(*cobra.Command, []string) error { return a.print(string(policy.Schema())) },
	}
	return group("policy", "Check permissions, and print their schema and presets", policyLong, a.policyCheck(), schema, a.policyPresets())
}

const policyCheckLong = `Print how the kernel would enforce each scope and rule, or why it cannot, and the
nearest rule that it can enforce. Scopes that FILE omits use the default. Without FILE,
permissions are read from standard input if that is piped. Nothing is run, and root is not
needed.

Exit status: 0 if gaol run would take the permissions here, 125 if not.`

// policyFlags are the flags of gaol policy check and presets.
type policyFlags struct {
	cwd      string
	launcher runtime.Launcher
	json     bool
}

func (a *app) policyCheck() *cobra.Command {
	f := policyFlags{launcher: runtime.LauncherExec}
	cmd := &cobra.Command{
		Use:   "check [FILE|-]",
		Short: "Print how each rule would be enforced",
		Long:  policyCheckLong,
		Example: `  gaol policy check policy.json
  gaol policy presets workspace | gaol policy check`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && source.IsPiped(a.stdin) {
				args = []string{"-"}
			}
			err := f.check()
			if err == nil && len(args) == 0 {
				err = errors.New("nothing to check: give a FILE or -")
			}
			if err != nil {
				return report.UsageError(cmd.CommandPath(), err)
			}
			return a.checkPolicy(cmd.Context(), args[0], f)
		},
	}
	f.addCwd(cmd)
	cmd.Flags().Var(flags.Launcher(&f.launcher), "launcher", "exec or zygote: with exec, Node must be among the allowed programs")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object: ok, held with rule and text, refused with place, value, why and nearest")
	return cmd
}

func (f *policyFlags) addCwd(cmd *cobra.Command) {
	flags.AddCwd(cmd, &f.cwd, "working `DIR` in the guest, as for gaol run")
}

func (f *policyFlags) check() error {
	if !path.IsAbs(f.cwd) || path.Clean(f.cwd) != f.cwd {
		return fmt.Errorf("--cwd %q: want an absolute, clean path in the guest", f.cwd)
	}
	return nil
}

func (a *app) checkPolicy(ctx context.Context, file string, f policyFlags) error {
	in, name, err := source.File(file, a.stdin)
	if err != nil {
		return report.Advise(fmt.Errorf("policy check: %w", err), "give a file of JSON, or -")
	}
	defer in.Close()
	checked, err := checkPermissions(ctx, in, name, f)
	if checked == nil {
		return fmt.Errorf("policy check: %w", err)
	}
	return cmp.Or(a.printEither(f.json, checked, checked.text()), err)
}

func (a *app) policyPresets() *cobra.Command {
	var f policyFlags
	cmd := &cobra.Command{
		Use:       "presets [NAME]",
		Short:     "List the presets, or print one as JSON",
		Long:      "List the presets, or print one as the JSON that --permissions @FILE takes.",
		Args:      usageArgs(cobra.MaximumNArgs(1)),
		ValidArgs: flags.PresetNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return report.UsageError(cmd.CommandPath(), err)
			}
			if len(args) == 0 {
				return a.print(presetTable())
			}
			preset, err := flags.Preset(args[0])
			if err != nil {
				return report.UsageError(cmd.CommandPath(), fmt.Errorf("%q: %w", args[0], err))
			}
			text, err := json.MarshalIndent(preset.Make(f.cwd), "", "  ")
			if err != nil {
				return err
			}
			return a.print(string(text) + "\n")
		},
	}
	f.addCwd(cmd)
	return cmd
}

func presetTable() string {
	var lines []string
	for _, p := range policy.Presets() {
		lines = append(lines, p.Name+"\t"+p.About)
	}
	return table(lines)
}
