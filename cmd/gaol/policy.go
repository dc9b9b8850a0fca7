package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/policy"
	"gaol/runtime"
)

const policyLong = `Permissions restrict a program: JSON with the scopes fs, network,
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
		RunE:  func(*cobra.Command, []string) error { return a.print(string(policy.Schema())) },
	}
	return group("policy", "Check permissions, and print their schema and presets", policyLong, a.policyCheck(), schema, a.policyPresets())
}

const policyCheckLong = `Print how the kernel would enforce each scope and rule, or why it cannot, and the
nearest rule that it can enforce. Scopes that FILE omits use the default. Without FILE,
permissions are read from standard input if that is piped. Nothing is run, and neither root
nor the program of another --isolation is needed.

Exit status: 0 if gaol run would take the permissions here, 125 if not.`

func (a *app) policyCheck() *cobra.Command {
	o := runtime.Options{Launcher: runtime.LauncherExec}
	var isolation string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [FILE|-]",
		Short: "Print how each rule would be enforced",
		Long:  policyCheckLong,
		Example: `  gaol policy check policy.json
  gaol policy presets workspace | gaol policy check --isolation runc`,
		Args: cobra.MatchAll(cobra.MaximumNArgs(1), func(_ *cobra.Command, args []string) (err error) {
			if o.Isolation, o.OCI, err = flags.ParseIsolation(isolation); err != nil {
				return err
			}
			if len(args) == 0 && !flags.IsPiped(a.stdin) {
				err = errors.New("nothing to check: give a FILE or -")
			}
			return cmp.Or(flags.CheckLauncher(&o), err)
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, name, err := flags.Input(cmd.Context(), append(args, "-")[0], a.stdin, policy.MaxText)
			if err != nil {
				return report.Advise(fmt.Errorf("policy check: %w", err), "give a file of JSON, or -")
			}
			checked, err := checkPermissions(text, name, o) // refused permissions have a result, too: the user asks about them
			return cmp.Or(a.printEither(asJSON, checked, checked.text()), err)
		},
	}
	addCwd(cmd, &o.Cwd)
	flags.Launchers.Add(cmd, &o.Launcher, "launcher", "exec or zygote: with exec, Node must be among the allowed programs")
	flags.AddIsolation(cmd, &isolation, "programs")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object: ok, held with rule and text, refused with place, value, why and nearest")
	return cmd
}

func addCwd(cmd *cobra.Command, cwd *string) {
	flags.AddCwd(cmd, cwd, "working `DIR` in the guest, as for gaol run")
}

const policyPresetsLong = `List the presets, or print one as the JSON that --permissions @FILE takes.

The preset npm allows the registries that npm install uses on the host. The .npmrc of a
project counts only with --project: a guest may have written it. To use another registry than
npm's, the guest needs its own .npmrc, or --env npm_config_registry=URL.`

func (a *app) policyPresets() *cobra.Command {
	var cwd, project string
	cmd := &cobra.Command{
		Use:   "presets [NAME]",
		Short: "List the presets, or print one as JSON",
		Long:  policyPresetsLong,
		Example: `  gaol policy presets
  gaol policy presets npm --project . > npm.json`,
		Args: cobra.MatchAll(cobra.MaximumNArgs(1), func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && project != "" {
				return errors.New("--project is for the preset npm")
			}
			return nil
		}),
		ValidArgs: flags.PresetNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				var lines []string
				for _, p := range flags.Presets() {
					lines = append(lines, p.Name+"\t"+p.About)
				}
				return a.print(report.Table(lines))
			}
			preset, err := flags.Preset(args[0], project)
			if err != nil {
				return report.UsageError(cmd.CommandPath(), fmt.Errorf("%q: %w", args[0], err))
			}
			text, err := json.MarshalIndent(preset.Make(cwd), "", "  ")
			if err != nil {
				return err
			}
			return a.print(string(text) + "\n")
		},
	}
	addCwd(cmd, &cwd)
	cmd.Flags().StringVar(&project, "project", "", "`DIR` of the host whose .npmrc counts, too, for the preset npm")
	return cmd
}

// policyCheck is the result of gaol policy check. Programs rely on its shape.
type policyCheck struct {
	OK      bool          `json:"ok"`
	Held    []heldRule    `json:"held"`
	Refused []refusedRule `json:"refused"`
}

// heldRule is the default or a rule of a scope, and the mechanism that enforces it.
type heldRule struct {
	Rule string `json:"rule"` // such as fs.default or fs.rules[0]
	Text string `json:"text"`
}

// refusedRule cannot be enforced.
type refusedRule struct {
	Place   string `json:"place"` // such as fs.rules[0].paths[1]; "" for all permissions
	Value   string `json:"value"` // the text at Place, if it is a single value
	Why     string `json:"why"`
	Nearest string `json:"nearest"` // what to write instead; may be ""
}

// checkPermissions checks the permissions in a text that errors call name.
func checkPermissions(text []byte, name string, o runtime.Options) (*policyCheck, error) {
	c := &policyCheck{Held: []heldRule{}, Refused: []refusedRule{}}
	var err error
	if o.Permissions, err = flags.Policy(text, name); err != nil {
		if bad, ok := errors.AsType[*policy.FormatError](err); ok {
			c.Refused = []refusedRule{{Place: bad.Place, Why: bad.Why, Nearest: bad.Nearest}}
		}
		return c, report.Advise(fmt.Errorf("policy check: %w", err), "`gaol policy schema` prints the language")
	}
	plan, err := runtime.CheckPermissions(o)
	if plan != nil {
		for _, n := range plan.Notes {
			c.Held = append(c.Held, heldRule{policy.RuleName(n.Scope, n.Rule), n.Text})
		}
	}
	if c.OK = err == nil; c.OK {
		return c, nil
	}
	for _, err := range flags.Refusals(err) {
		refused := refusedRule{Why: err.Error()}
		if rule, ok := errors.AsType[*policy.RuleError](err); ok {
			refused = refusedRule{rule.Place, rule.Value, rule.Why, rule.Nearest}
		}
		c.Refused = append(c.Refused, refused)
	}
	if plan != nil { // another machine could enforce it
		return c, fmt.Errorf("policy check: %s: this kernel cannot enforce it: %w", name, err)
	}
	return c, report.Advise(fmt.Errorf("policy check: %s: refused", name), "see above")
}

// text prints the result for people.
func (c *policyCheck) text() string {
	var held []string
	for _, h := range c.Held {
		held = append(held, h.Rule+"\t"+h.Text)
	}
	text := report.Table(held)
	for _, r := range c.Refused {
		place := "refused: " + r.Place
		if r.Value != "" {
			place += " " + strconv.Quote(r.Value)
		}
		text += fmt.Sprintf("%s\n  why:     %s\n", strings.TrimSpace(place), r.Why)
		if r.Nearest != "" {
			text += "  nearest: " + r.Nearest + "\n"
		}
	}
	return text
}
