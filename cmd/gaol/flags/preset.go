package flags

import (
	"errors"
	"fmt"
	"strings"

	"gaol/policy"
)

// npmPreset is the name of the preset that depends on the configuration of npm.
const npmPreset = "npm"

// Presets returns those of package policy, and npm, which has no Make: see Preset.
func Presets() []policy.Preset {
	return append(policy.Presets(), policy.Preset{Name: npmPreset, About: "as default, with the registries of npm's configuration"})
}

// Preset returns the preset of that name. For npm, the configuration of the folder project
// counts, too, unless project is "".
func Preset(name, project string) (policy.Preset, error) {
	for _, p := range Presets() {
		if p.Name != name {
			continue
		}
		if project != "" && name != npmPreset {
			return p, errors.New("--project is for the preset npm")
		}
		if name == npmPreset {
			return registries(p, project)
		}
		return p, nil
	}
	return policy.Preset{}, errors.New("want one of " + strings.Join(PresetNames(), ", "))
}

// registries completes the preset npm.
func registries(p policy.Preset, project string) (policy.Preset, error) {
	addresses, err := registryAddresses(project)
	if err != nil {
		return p, fmt.Errorf("npm's configuration: %w", err)
	}
	rule := policy.Rule{Mode: policy.Allow}
	for _, a := range addresses {
		rule.Patterns = append(rule.Patterns, "tcp://"+a)
	}
	p.Make = func(string) policy.Permissions {
		made := policy.Default()
		made.Network.Rules = append(made.Network.Rules, rule)
		return made.Clone()
	}
	return p, nil
}

// PresetNames returns the names of Presets.
func PresetNames() (names []string) {
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}
