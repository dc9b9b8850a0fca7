package settings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/server/quota"
	"gaol/internal/lazyregexp"
	"gaol/policy"
	"gaol/runtime/snippets"
	"gaol/runtime/snippets/lint"
)

// Snippets are the settings of snippets: see package snippets.
type Snippets struct {
	// NodeModules is a folder of the machine with the packages that snippets may import.
	NodeModules string `json:"nodeModules,omitzero"`

	// Adapter reads the state of a framework, unless a request names another one: "none",
	// "directive", or the path of a .mjs file, which is then called by the file's name. Default: none.
	Adapter string `json:"adapter,omitzero"`

	// NoLint turns off the adapter's lint rules.
	NoLint bool `json:"noLint,omitzero"`

	// LintRules is the path of a JSON file with lint rules that replace the adapter's: see
	// docs/snippets.md#lint-rules. Snippets of requests that name another adapter are not checked.
	LintRules string `json:"lintRules,omitzero"`

	// Network is "public" if requests may ask for the public internet. Default: none.
	Network string `json:"network,omitzero"`

	// Origins are the origins of web pages that may run snippets, such as https://docs.example.com.
	Origins []string `json:"origins,omitzero"`

	// Anonymous lets callers without a token run snippets, and nothing else, if present.
	Anonymous *Anonymous `json:"anonymous,omitzero"`

	// Adapters are the adapters that requests may name, the default one first.
	Adapters []snippets.Adapter `json:"-"`

	// rules are read from the file LintRules. Nil: the adapter's.
	rules *lint.Rules
}

// Anonymous bounds the callers of TCP that have no token. They are one tenant together.
type Anonymous struct {
	// RequestsPerMin are the requests of one address on average, and in a burst. Of IPv6, a network of 64
	// bits is one address. Default: 30.
	RequestsPerMin float64 `json:"requestsPerMin,omitzero"`

	// Proxies are reverse proxies: of their requests, the client's address is the last one in
	// X-Forwarded-For that is none of them.
	Proxies []netip.Prefix `json:"proxies,omitzero"`

	// Limits bound them together. Default: 8 runs, 20 requests a second; otherwise as Tenant.
	quota.Limits
}

// AnonymousTenant is the name of the tenant of anonymous callers.
const AnonymousTenant = "anonymous"

// Defaults of [Anonymous].
const (
	anonymousRuns           = 8
	anonymousRequests       = 20 // a second
	anonymousRequestsPerMin = 30
)

// The most bytes of the file of an adapter, and of the one of lint rules.
const (
	MaxAdapter   = 1 << 20
	MaxLintRules = 1 << 20
)

// Limits returns the limits of tenants that have their own.
func (s *Settings) Limits() map[string]quota.Limits {
	if s.Snippets.Anonymous == nil {
		return s.Tenants
	}
	all := map[string]quota.Limits{}
	maps.Copy(all, s.Tenants)
	all[AnonymousTenant] = s.Snippets.Anonymous.Or(quota.Limits{Runs: anonymousRuns, Requests: anonymousRequests})
	return all
}

// PerMin returns how many requests an address may send in a minute.
func (a *Anonymous) PerMin() float64 { return cmp.Or(a.RequestsPerMin, anonymousRequestsPerMin) }

// Rules returns the lint rules for snippets that use an adapter. Nil: the adapter's.
func (s *Snippets) Rules(adapter string) *lint.Rules {
	if adapter != s.Adapters[0].Name {
		return nil
	}
	return s.rules
}

// complete checks the settings, and reads the adapter and the lint rules.
func (s *Snippets) complete() error {
	if s.Network != "" && s.Network != publicPreset {
		return fmt.Errorf("snippets: network %q: want public, or nothing", s.Network)
	}
	if a := s.Anonymous; a != nil {
		if err := a.check(); err != nil {
			return fmt.Errorf("snippets: anonymous: %w", err)
		}
	}
	if s.NodeModules != "" {
		if err := checkFolder(s.NodeModules); err != nil {
			return fmt.Errorf("snippets: nodeModules %q: %w", s.NodeModules, err)
		}
	}
	if err := s.readAdapter(); err != nil {
		return fmt.Errorf("snippets: adapter %q: %w", s.Adapter, err)
	}
	if err := s.readLintRules(); err != nil {
		return fmt.Errorf("snippets: lintRules %q: %w", s.LintRules, err)
	}
	return nil
}

func (a *Anonymous) check() error {
	if !(a.RequestsPerMin >= 0 && a.RequestsPerMin <= 1e6) {
		return fmt.Errorf("requestsPerMin: %v is not a limit", a.RequestsPerMin)
	}
	for _, p := range a.Proxies {
		if p != p.Masked() {
			return fmt.Errorf("proxies: %s: want %s", p, p.Masked())
		}
	}
	return a.Check()
}

func checkFolder(path string) error {
	if !filepath.IsAbs(path) {
		return errors.New("want an absolute path")
	}
	info, err := os.Stat(path)
	if err != nil {
		return errors.Unwrap(err) // without the path, which the caller adds
	}
	if !info.IsDir() {
		return errors.New("it is not a folder")
	}
	return nil
}

// adapterName is the form of the name of an operator's adapter.
var adapterName = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// readAdapter finds the adapter.
func (s *Snippets) readAdapter() error {
	if strings.HasSuffix(s.Adapter, ".mjs") && !filepath.IsAbs(s.Adapter) {
		return errors.New("want none, directive, or the absolute path of a .mjs file")
	}
	usual, err := ReadAdapter(cmp.Or(s.Adapter, snippets.None.Name))
	s.Adapters = slices.Compact([]snippets.Adapter{usual, snippets.None})
	return err
}

// ReadAdapter returns an adapter by its name, or reads one from a file, which names it. Errors lack the path.
func ReadAdapter(path string) (a snippets.Adapter, err error) {
	switch path {
	case snippets.None.Name:
		return snippets.None, nil
	case snippets.Directive.Name:
		return snippets.Directive, nil
	}
	name, ok := strings.CutSuffix(filepath.Base(path), ".mjs")
	if !ok {
		return a, errors.New("want none, directive, or the path of a .mjs file")
	}
	if !adapterName().MatchString(name) || name == snippets.None.Name || name == snippets.Directive.Name {
		return a, errors.New("the file's name names the adapter: want lower-case letters, digits and ._-, and neither none nor directive")
	}
	code, err := flags.ReadFile(path, MaxAdapter, nil)
	if err == nil && len(code) == 0 {
		err = errors.New("it is empty")
	}
	return snippets.Adapter{Name: name, Code: string(code)}, err
}

// readLintRules reads the lint rules if there is a file.
func (s *Snippets) readLintRules() (err error) {
	s.rules = nil
	if s.LintRules == "" {
		return nil
	}
	if s.NoLint {
		return errors.New("noLint turns off all rules: remove one of the two settings")
	}
	if !filepath.IsAbs(s.LintRules) {
		return errors.New("want an absolute path")
	}
	s.rules, err = ReadLintRules(s.LintRules)
	return err
}

// ReadLintRules reads a file of lint rules. Errors lack the path.
func ReadLintRules(path string) (*lint.Rules, error) {
	text, err := flags.ReadFile(path, MaxLintRules, nil)
	if err != nil {
		return nil, err
	}
	rules, err := lint.Parse(text)
	return &rules, err
}

// publicPreset is the network of the public internet.
const publicPreset = "public"

// checkSnippets completes the settings of snippets, and compares them with the others.
func (s *Settings) checkSnippets() error {
	if err := s.Snippets.complete(); err != nil {
		return err
	}
	if s.Snippets.Network == publicPreset {
		if _, err := policy.Narrow(policy.Permissions{Network: s.Permissions.Network}, publicNetwork(), policy.World{}); err != nil {
			return fmt.Errorf("snippets: network %q: the setting permissions does not allow it", s.Snippets.Network)
		}
	}
	return nil
}

// checkPublicURL checks the URL, and removes a slash at its end.
func (s *Settings) checkPublicURL() error {
	if s.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(s.PublicURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.ForceQuery ||
		u.Fragment != "" || strings.HasSuffix(s.PublicURL, "#") || len(s.PublicURL) > maxPublicURL {
		return fmt.Errorf("publicUrl %q: want an http or https URL without query and fragment", s.PublicURL)
	}
	s.PublicURL = strings.TrimRight(u.String(), "/")
	return nil
}

// maxPublicURL bounds the URL in bytes.
const maxPublicURL = 1000
