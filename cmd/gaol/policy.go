package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"gaol/policy"
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

The kernel holds each of them, or gaol refuses it. gaol run takes them as
--permissions, by name as --preset.`

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Check permissions, and print their schema and presets",
		Long:  policyLong,
		Args:  usageArgs(noArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.policyCheck(), a.policySchema(), a.policyPresets())
	return cmd
}

const policyCheckLong = `Say of each scope and rule by what the kernel would hold it, or why nothing can,
and the nearest that it can. Scopes that FILE leaves out are the default's. Without
FILE, permissions are read from standard input if that is piped.
Nothing is run, and it takes no root.

Exit status: 0 if gaol run would take the permissions here, 125 if not.`

// policyFlags are the flags of gaol policy check and presets.
type policyFlags struct {
	cwd      string
	launcher launcher
	json     bool
}

func (a *app) policyCheck() *cobra.Command {
	f := policyFlags{launcher: defaultRunFlags().launcher}
	cmd := &cobra.Command{
		Use:   "check [FILE|-]",
		Short: "Say by what each rule would be held",
		Long:  policyCheckLong,
		Example: `  gaol policy check policy.json
  gaol policy presets workspace | gaol policy check`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && isPiped(a.stdin) {
				args = []string{"-"}
			}
			err := f.check()
			if err == nil && len(args) == 0 {
				err = errors.New("nothing to check: give a FILE or -")
			}
			if err != nil {
				return usageError(cmd.CommandPath(), err)
			}
			return a.checkPolicy(cmd.Context(), args[0], f)
		},
	}
	addCwdFlag(cmd, &f.cwd)
	cmd.Flags().Var(&f.launcher, "launcher", "exec or zygote: exec has to be allowed to start Node")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object: ok, held with rule and text, refused with place, value, why and nearest")
	return cmd
}

func addCwdFlag(cmd *cobra.Command, cwd *string) {
	cmd.Flags().StringVar(cwd, "cwd", "/workspace", "working `DIR` in the guest, as of gaol run")
}

func (f *policyFlags) check() error {
	if !path.IsAbs(f.cwd) || path.Clean(f.cwd) != f.cwd {
		return errors.New("--cwd " + quote(f.cwd) + ": want an absolute, clean path in the guest")
	}
	return nil
}

func (a *app) checkPolicy(ctx context.Context, file string, f policyFlags) error {
	in, name := a.stdin, "standard input"
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return &advisedError{fmt.Errorf("policy check: %w", err), "give a file of JSON, or -"}
		}
		defer opened.Close()
		in, name = opened, file
	}
	verdict, err := judge(ctx, in, name, f)
	if verdict == nil {
		return fmt.Errorf("policy check: %w", err)
	}
	if printErr := a.printVerdict(verdict, f.json); printErr != nil {
		return printErr
	}
	return err
}

func (a *app) printVerdict(v *verdict, asJSON bool) error {
	if asJSON {
		return a.printJSON(v)
	}
	return a.print(v.text())
}

func (a *app) policySchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON Schema of permissions, for editors and models",
		Args:  usageArgs(noArgs),
		RunE:  func(*cobra.Command, []string) error { return a.print(string(policy.Schema())) },
	}
}

func (a *app) policyPresets() *cobra.Command {
	var f policyFlags
	cmd := &cobra.Command{
		Use:       "presets [NAME]",
		Short:     "List the presets, or print one as JSON",
		Long:      "List the presets, or print one as the JSON that --permissions @FILE takes.",
		Args:      usageArgs(cobra.MaximumNArgs(1)),
		ValidArgs: presetNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return usageError(cmd.CommandPath(), err)
			}
			if len(args) == 0 {
				return a.print(presetTable())
			}
			made, ok := presetNamed(args[0])
			if !ok {
				return usageError(cmd.CommandPath(), fmt.Errorf("%q: %w", args[0], wantPreset()))
			}
			text, err := json.MarshalIndent(made.Make(f.cwd), "", "  ")
			if err != nil {
				return err
			}
			return a.print(string(text) + "\n")
		},
	}
	addCwdFlag(cmd, &f.cwd)
	return cmd
}

func presetTable() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	for _, p := range policy.Presets() {
		fmt.Fprintf(w, "%s\t%s\n", p.Name, p.About)
	}
	_ = w.Flush() // it writes to memory
	return text.String()
}
