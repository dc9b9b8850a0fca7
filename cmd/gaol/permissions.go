package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"gaol/policy"
)

// permissions is a JSON object, or @FILE.
type permissions struct {
	text  string // as it was given
	value policy.Permissions
}

// Set implements pflag.Value.
func (v *permissions) Set(s string) error {
	text := []byte(s)
	if file, ok := strings.CutPrefix(s, "@"); ok {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return err
		}
	}
	p, err := policy.Parse(text)
	*v = permissions{s, p}
	return err
}

// String implements pflag.Value.
func (v *permissions) String() string { return v.text }

// Type implements pflag.Value.
func (*permissions) Type() string { return "JSON" }

// preset is the name of one of policy.Presets.
type preset string

// Set implements pflag.Value.
func (v *preset) Set(s string) error {
	if _, ok := presetNamed(s); !ok {
		return fmt.Errorf("want one of %s", strings.Join(presetNames(), ", "))
	}
	*v = preset(s)
	return nil
}

// String implements pflag.Value.
func (v *preset) String() string { return string(*v) }

// Type implements pflag.Value.
func (*preset) Type() string { return "NAME" }

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

// networkPatterns are what --allow-net adds.
type networkPatterns []string

// Set implements pflag.Value.
func (v *networkPatterns) Set(s string) error {
	*v = append(*v, s)
	rule := policy.Rule{Mode: policy.Allow, Patterns: []string{s}}
	return policy.Permissions{Network: policy.Scope{Rules: []policy.Rule{rule}}}.Check()
}

// String implements pflag.Value.
func (v *networkPatterns) String() string { return strings.Join(*v, " ") }

// Type implements pflag.Value.
func (*networkPatterns) Type() string { return "PATTERN" }

// permit is what the flags together permit.
func (f *runFlags) permit() policy.Permissions {
	p := f.permissions.value
	if made, ok := presetNamed(string(f.preset)); ok {
		p = p.Over(made.Make(f.cwd))
	}
	if len(f.network) > 0 {
		p.Network.Rules = append(p.Network.Rules, policy.Rule{
			Mode: policy.Allow, Operations: []policy.Operation{"fetch", "connect", "listen"}, Patterns: f.network,
		})
	}
	return p
}

var errNetworkTwice = errors.New("--allow-net beside a network scope of --permissions: say it all in one of them")

func (f *runFlags) checkPermissions() error {
	if len(f.network) > 0 && !f.permissions.value.Network.IsZero() {
		return errNetworkTwice
	}
	return nil
}
