package flags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gaol/policy"
	"gaol/rootfs"
	"gaol/runtime"
)

// permissions are the flags for the program's permissions.
type permissions struct {
	text    string             // --permissions as given
	parsed  policy.Permissions // --permissions
	preset  policy.Preset      // --preset; zero: none
	network []string           // --allow-net
}

func (p *permissions) add(cmd *cobra.Command, o *runtime.Options) {
	set, names := cmd.Flags(), PresetNames()
	set.StringVar(&p.text, "permissions", "", "permissions of the program, as a `JSON` object or @FILE; its scopes replace the preset's")
	set.Func("preset", "`NAME` of permissions: "+strings.Join(names, ", ")+" (default \"default\")", func(name string) (err error) {
		p.preset, err = Preset(name, "")
		return err
	})
	set.StringArrayVar(&p.network, "allow-net", nil, "what the program may connect to, and on localhost listen on: `HOST[:PORT]`, a pattern such as tcp://localhost:*, or all; repeatable")
	set.StringVar(&o.Proxy, "proxy", "", "`URL` of the HTTP proxy through which external hosts are reached, or none (default: HTTPS_PROXY and HTTP_PROXY)")
	set.BoolVar(&o.ProxyNames, "proxy-names", false, "let the proxy look up names; it must then refuse private addresses itself")
	set.BoolVar(&o.AllowDegraded, "allow-degraded", false, "run even if this kernel cannot enforce all permissions, and print which")
	set.BoolVar(&o.AuditDenials, "audit-denials", false, "also report denials of files that the kernel's audit records")
	Complete(cmd, "preset", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	Complete(cmd, "allow-net", cobra.FixedCompletions([]string{"all", "tcp://localhost:*", "udp://localhost:*"}, cobra.ShellCompDirectiveNoFileComp))
}

// allowed returns the permissions of all flags together: the preset, overridden by the scopes of
// --permissions, with the rules of --allow-net, --publish and --host-port appended to the network scope.
func (f *Sandbox) allowed() policy.Permissions {
	p := f.permissions.parsed.Clone()
	if f.permissions.preset.Make != nil {
		p = p.Over(f.permissions.preset.Make(f.options.Cwd))
	}
	if more := f.networkRules(); more != nil {
		if p.Network.IsZero() {
			p.Network = policy.Default().Network
		}
		p.Network.Rules = append(p.Network.Rules, more...)
	}
	return p
}

// networkRules returns the rules of --allow-net, --publish and --host-port.
func (f *Sandbox) networkRules() (rules []policy.Rule) {
	if len(f.permissions.network) > 0 {
		rule := policy.Rule{Mode: policy.Allow}
		for _, value := range f.permissions.network {
			rule.Patterns = append(rule.Patterns, networkPatterns(value)...)
		}
		rules = append(rules, rule)
	}
	if len(f.Published) > 0 { // on any port, because the kernel cannot distinguish them
		rules = append(rules, policy.Rule{Mode: policy.Allow, Operations: []policy.Operation{"listen"}, Patterns: []string{"tcp://localhost:*"}})
	}
	if ports := f.options.HostPorts; len(ports) > 0 {
		rule := policy.Rule{Mode: policy.Allow, Operations: []policy.Operation{"fetch", "connect"}}
		for _, port := range ports {
			rule.Patterns = append(rule.Patterns, fmt.Sprintf("tcp://localhost:%d", port))
		}
		rules = append(rules, rule)
	}
	return rules
}

// checkPermissions reads --permissions and rejects what no kernel can enforce. Create
// rejects what only this kernel cannot enforce.
func (f *Sandbox) checkPermissions(ctx context.Context) (err error) {
	p := &f.permissions
	if f.Set.Changed("permissions") {
		if p.parsed, err = readPermissions(ctx, p.text); err != nil {
			return err
		}
	}
	if len(p.network) > 0 && !p.parsed.Network.IsZero() {
		return errors.New("--allow-net beside a network scope of --permissions: use one of them")
	}
	o := f.Options()
	if o.Permissions.IsZero() { // the default
		return nil
	}
	plan, err := runtime.CheckPermissions(o)
	if plan != nil {
		return nil
	}
	all := Refusals(err)
	if len(p.network) > 0 {
		const flag = "--allow-net" // the user has not written network.rules[0]
		if bad, ok := errors.AsType[*policy.FormatError](all[0]); ok && strings.HasPrefix(bad.Place, policy.Network) {
			bad.Place = flag
		}
		if refused, ok := errors.AsType[*policy.RuleError](all[0]); ok && refused.Scope == policy.Network {
			refused.Place = flag
		}
	}
	if len(all) > 1 {
		return fmt.Errorf("%w; and %d more, which gaol policy check lists", all[0], len(all)-1)
	}
	return all[0]
}

// networkPatterns returns the patterns of a value of --allow-net.
func networkPatterns(value string) []string {
	switch {
	case value == "all":
		return []string{"tcp://*:*", "udp://*:*", "dns://*"}
	case strings.Contains(value, "://"):
		return []string{value}
	}
	if i := strings.LastIndexByte(value, ':'); i < 0 || strings.HasSuffix(value, "]") {
		value += ":*"
	}
	return []string{"tcp://" + value}
}

// readPermissions reads a value of --permissions.
func readPermissions(ctx context.Context, value string) (p policy.Permissions, err error) {
	text, name := []byte(value), "--permissions"
	if path, isFile := strings.CutPrefix(value, "@"); isFile {
		if text, err = readFile(ctx, path, policy.MaxText); err != nil {
			return p, fmt.Errorf("%s: %w", name, err)
		}
		name += " " + value
	} else if !strings.HasPrefix(strings.TrimSpace(value), "{") {
		return p, fmt.Errorf("%s %.80q: want a JSON object, or a file of one as @FILE", name, value)
	}
	return Policy(text, name)
}

// Refusals returns the errors that errors.Join joined in err, one for each rule.
func Refusals(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// npmPreset is the name of the preset that depends on the configuration of npm. The others are its defaults of --disk,
// --memory and --timeout: the packages of Next.js and npm's cache of them take 500 MB, npm itself up to 300, and 18 s, or 44
// on a busy machine.
const (
	npmPreset = "npm"
	npmDisk   = 4 << 30
	npmMemory = 512 << 20

	npmTimeout = 5 * time.Minute
)

// Presets returns the presets of package policy, and npm, whose Make is nil: see Preset.
func Presets() []policy.Preset {
	return append(policy.Presets(), policy.Preset{Name: npmPreset, About: "as default, with the registries of npm's configuration"})
}

// Preset returns the preset of that name. For npm, the configuration of the folder project
// counts, too, unless project is "".
func Preset(name, project string) (policy.Preset, error) {
	all := Presets()
	at := slices.IndexFunc(all, func(p policy.Preset) bool { return p.Name == name })
	switch {
	case at < 0:
		return policy.Preset{}, errors.New("want one of " + strings.Join(PresetNames(), ", "))
	case name == npmPreset:
		return registries(all[at], project)
	case project != "":
		return policy.Preset{}, errors.New("--project is for the preset npm")
	}
	return all[at], nil
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

// registryAddresses returns the registries of npm's configuration and of single scopes, each as
// HOST:PORT, sorted: see [rootfs.NPMRegistries]. Results and errors contain no tokens and passwords. Hosts that only a
// registry's responses name, such as mirrors of packages, are not included.
func registryAddresses(project string) (addresses []string, err error) {
	registries, err := rootfs.NPMRegistries(project)
	if err != nil {
		return nil, err
	}
	for key, r := range registries {
		address, err := registryAddress(r.URL)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", key, r.From, err)
		}
		addresses = append(addresses, address)
	}
	slices.Sort(addresses)
	return slices.Compact(addresses), nil
}

var errNotURL = errors.New("not an http or https URL")

// registryAddress returns the host and port of a registry's URL. Its errors don't contain the URL.
func registryAddress(registry string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(registry))
	if err != nil {
		return "", errNotURL
	}
	host := strings.ToLower(u.Hostname())
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	if host == "" || port == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errNotURL
	}
	if a, err := netip.ParseAddr(host); host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		err == nil && (a.Unmap().IsLoopback() || a.IsUnspecified()) {
		return "", errors.New("on the host's localhost, which no guest reaches")
	}
	return net.JoinHostPort(host, port), nil
}
