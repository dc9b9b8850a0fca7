package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"gaol/policy"
	"gaol/runtime"
)

// granted are the flags of gaol run that say what the program may do.
type granted struct {
	text     string // of --permissions, as it was given
	preset   preset
	network  []string // of --allow-net
	degraded bool
	audit    bool

	said policy.Permissions // by --permissions
}

// add defines the flags on cmd.
func (g *granted) add(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&g.text, "permissions", "", "what the program may do, as a `JSON` object or @FILE; laid over the preset scope by scope")
	set.Var(&g.preset, "preset", strings.Join(presetNames(), ", ")+": permissions by name (default \"default\")")
	set.StringArrayVar(&g.network, "allow-net", nil, "`PATTERN` of what the program may connect to and listen on, like tcp://localhost:*; may be repeated")
	set.BoolVar(&g.degraded, "allow-degraded", false, "go on where this kernel can't hold all permissions, and say which")
	set.BoolVar(&g.audit, "audit-denials", false, "have the kernel's audit tell of denied files, too")
	// They fail only for a flag that isn't there.
	_ = cmd.RegisterFlagCompletionFunc("preset", cobra.FixedCompletions(presetNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("allow-net", cobra.FixedCompletions([]string{"tcp://localhost:*", "udp://localhost:*"}, cobra.ShellCompDirectiveNoFileComp))
}

// preset is the name of one of policy.Presets.
type preset string

// Set implements pflag.Value.
func (v *preset) Set(s string) error {
	if _, ok := presetNamed(s); !ok {
		return wantPreset()
	}
	*v = preset(s)
	return nil
}

// String implements pflag.Value.
func (v *preset) String() string { return string(*v) }

// Type implements pflag.Value.
func (*preset) Type() string { return "NAME" }

func wantPreset() error {
	return errors.New("want one of " + strings.Join(presetNames(), ", "))
}

func presetNamed(name string) (policy.Preset, bool) {
	for _, p := range policy.Presets() {
		if p.Name == name {
			return p, true
		}
	}
	return policy.Preset{}, false
}

func presetNames() []string {
	var names []string
	for _, p := range policy.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// permit is what the flags together permit: the preset, over it scope by scope what
// --permissions says, and behind the network's rules those of --allow-net.
func (f *runFlags) permit() policy.Permissions {
	p := f.granted.said.Clone()
	if made, ok := presetNamed(string(f.granted.preset)); ok {
		p = p.Over(made.Make(f.cwd))
	}
	if len(f.granted.network) > 0 {
		p.Network.Rules = append(p.Network.Rules, policy.Rule{Mode: policy.Allow, Patterns: f.granted.network})
	}
	return p
}

var errNetworkTwice = errors.New("--allow-net beside a network scope of --permissions: say it all in one of them")

// checkPermissions reads what --permissions names, and refuses what can't be held
// before anything is made. What only this kernel can't hold is left to Create.
func (f *runFlags) checkPermissions(ctx context.Context) (err error) {
	g := &f.granted
	if f.set.Changed("permissions") {
		if g.said, err = readPermissions(ctx, g.text); err != nil {
			return err
		}
	}
	if len(g.network) > 0 && !g.said.Network.IsZero() {
		return errNetworkTwice
	}
	for _, pattern := range g.network {
		if err := checkPattern(pattern); err != nil {
			return err
		}
	}
	if plan, err := runtime.CheckPermissions(f.options()); plan == nil {
		return firstRefusal(err)
	}
	return nil
}

// readPermissions reads a value of --permissions.
func readPermissions(ctx context.Context, value string) (policy.Permissions, error) {
	text, name := []byte(value), "--permissions"
	switch path, isFile := strings.CutPrefix(value, "@"); {
	case isFile:
		file, err := os.Open(path)
		if err != nil {
			return policy.Permissions{}, fmt.Errorf("%s: %w", name, err)
		}
		defer file.Close()
		return readPolicy(ctx, file, name+" "+value)
	case !strings.HasPrefix(strings.TrimSpace(value), "{"):
		return policy.Permissions{}, fmt.Errorf("%s %.80q: want a JSON object, or a file of one as @FILE", name, value)
	}
	return readPolicy(ctx, bytes.NewReader(text), name)
}

// readPolicy reads permissions from r. Its errors call it name.
func readPolicy(ctx context.Context, r io.Reader, name string) (policy.Permissions, error) {
	text, err := readBounded(ctx, r, name, policy.MaxText)
	if err != nil {
		return policy.Permissions{}, err
	}
	p, err := policy.Parse(text)
	if bad, ok := errors.AsType[*policy.FormatError](err); ok {
		err = &misread{name, bad}
	}
	return p, err
}

// misread is a text that is no permissions, and which one.
type misread struct {
	name string
	*policy.FormatError
}

func (e *misread) Error() string {
	if e.Place == "" {
		return e.name + ": " + e.Why
	}
	return e.name + ": " + e.Place + ": " + e.Why
}

func (e *misread) Unwrap() error { return e.FormatError }

// checkPattern refuses a pattern of --allow-net that nothing can hold by itself.
func checkPattern(pattern string) error {
	rule := policy.Rule{Mode: policy.Allow, Patterns: []string{pattern}}
	plan, err := runtime.CheckPermissions(runtime.Options{Permissions: policy.Permissions{Network: policy.Scope{Rules: []policy.Rule{rule}}}})
	if plan != nil {
		return nil
	}
	if bad, ok := errors.AsType[*policy.FormatError](err); ok {
		return errors.New("--allow-net " + bad.Why) // which quotes the pattern
	}
	if refused, ok := errors.AsType[*policy.RuleError](err); ok {
		nearest := refused.Nearest
		if proto, _, _ := strings.Cut(pattern, ":"); proto != "dns" {
			nearest = proto + "://localhost:*" // ports by themselves take more than one rule
		}
		return fmt.Errorf("--allow-net %q: %s; nearest: %s", pattern, refused.Why, nearest)
	}
	return err
}

// firstRefusal makes one line of many refused rules.
func firstRefusal(err error) error {
	all := refusals(err)
	if len(all) < 2 {
		return err
	}
	return fmt.Errorf("%w; and %d more, which gaol policy check lists", all[0], len(all)-1)
}

// refusals are the errors of rules that errors.Join has put together.
func refusals(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
