package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/server/quota"
	"gaol/internal/lazyregexp"
	"gaol/internal/strictjson"
	"gaol/policy"
	"gaol/runtime/snippets"
)

// Settings are the settings of a server. The zero value is not useful: see [Default] and [Read].
type Settings struct {
	// Images are the names of the server's images that tenants may use, also as the base of their own. Default: all in the store.
	Images []string `json:"images,omitzero"`

	// Isolation is what confines sandboxes whose request names none, as --isolation of gaol run:
	// native, gvisor, microvm, runc, crun, or oci=/path. Default: native.
	Isolation string `json:"isolation,omitzero"`

	// Isolations are others that requests may name.
	Isolations []string `json:"isolations,omitzero"`

	// Allowed are the isolations that requests may choose, the default one first: see the two above.
	Allowed []Isolation `json:"-"`

	// Permissions are the upper bound of the permissions of a sandbox. Default: everything inside the
	// sandbox, and the public internet; private addresses of the network stay denied.
	Permissions policy.Permissions `json:"permissions,omitzero"`

	// Mounts lets tenants with a user of this machine mount folders, if present.
	Mounts *Mounts `json:"mounts,omitzero"`

	// HostPorts are the ports of the machine's localhost that tenants may name, with all users and
	// tokens alike: "3000", or "8000-8099". Default: none.
	HostPorts []PortRange `json:"hostPorts,omitzero"`

	// IdleTimeoutMs is how long a sandbox lives without use, unless its creator asked for less.
	// Default: 15 minutes.
	IdleTimeoutMs int64 `json:"idleTimeoutMs,omitzero"`

	// LifetimeMs is how long a sandbox lives at most. Default: a day.
	LifetimeMs int64 `json:"lifetimeMs,omitzero"`

	// RunTimeoutMs is the most that one run may ask for. Default: an hour.
	RunTimeoutMs int64 `json:"runTimeoutMs,omitzero"`

	// DrainMs is how long runs may continue after SIGTERM. Default: 10 seconds.
	DrainMs int64 `json:"drainMs,omitzero"`

	// Server bounds all tenants together.
	Server quota.Limits `json:"server,omitzero"`

	// Tenant bounds each of them.
	Tenant quota.Limits `json:"tenant,omitzero"`

	// Tenants are the limits of single tenants by name, such as "uid:1000" or "token:ci".
	Tenants map[string]quota.Limits `json:"tenants,omitzero"`

	// Hosts are names by which browsers and programs reach the TCP listener, beside localhost and
	// the address that it listens on.
	Hosts []string `json:"hosts,omitzero"`

	// Origins are the origins of web pages that may use the server, such as https://tools.example.com.
	Origins []string `json:"origins,omitzero"`

	// PreviewHost is a domain whose names PORT-SANDBOX.DOMAIN lead to ports of
	// sandboxes, for browsers. It needs a wildcard entry in DNS, and should be used for nothing
	// else.
	PreviewHost string `json:"previewHost,omitzero"`

	// PublicURL is the URL by which people reach the server's page, for links.
	PublicURL string `json:"publicUrl,omitzero"`

	// Snippets are the settings of snippets.
	Snippets Snippets `json:"snippets,omitzero"`

	// Playground is the page on which people write and run snippets.
	Playground Playground `json:"playground,omitzero"`

	// AuditLog is the file to which one line of JSON is appended for each action of a tenant.
	AuditLog string `json:"auditLog,omitzero"`

	// Named are the limits of Tenant that are not defaults.
	Named quota.Limits `json:"-"`

	// Trusted is set if the only client is trusted like root: see [Trusted].
	Trusted bool `json:"-"`
}

// Mounts allow tenants to mount folders.
type Mounts struct {
	// Base is the folder below which the folders are, an absolute path.
	Base string `json:"base"`

	// NodeModules allows nodeModules below that folder, too.
	NodeModules bool `json:"nodeModules,omitzero"`
}

// maxFile bounds the configuration file, in bytes.
const maxFile = 1 << 20

// Overrides are settings that replace those of a file, unless they are empty.
type Overrides struct {
	PublicURL   string
	NodeModules string // of snippets
	Isolation   string

	NoPlayground bool
}

// Read reads a file of JSON and applies the overrides. Fields that it omits have their defaults;
// unknown ones are an error. An empty path means the defaults.
func Read(path string, o Overrides) (*Settings, error) {
	s := &Settings{}
	if path != "" {
		if err := readFile(path, s); err != nil {
			return nil, fmt.Errorf("config: %s: %w", path, err)
		}
	}
	s.PublicURL, s.Snippets.NodeModules = cmp.Or(o.PublicURL, s.PublicURL), cmp.Or(o.NodeModules, s.Snippets.NodeModules)
	s.Isolation = cmp.Or(o.Isolation, s.Isolation)
	s.Playground.Off = s.Playground.Off || o.NoPlayground
	if err := s.complete(); err != nil {
		return nil, fmt.Errorf("config: %s: %w", cmp.Or(path, "defaults"), err)
	}
	return s, nil
}

func readFile(path string, s *Settings) error {
	text, err := flags.ReadFile(path, maxFile, func(info fs.FileInfo) error {
		if info.Mode().Perm()&0o022 != 0 {
			return errors.New("file is writable by group or others: want mode 0644 or less")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return strictjson.Decode(text, s)
}

// complete sets the defaults and checks all values.
func (s *Settings) complete() error {
	for field, def := range map[*int64]time.Duration{
		&s.IdleTimeoutMs: 15 * time.Minute, &s.LifetimeMs: 24 * time.Hour, &s.RunTimeoutMs: time.Hour, &s.DrainMs: 10 * time.Second,
	} {
		if *field < 0 || *field > int64(365*24*time.Hour/time.Millisecond) {
			return fmt.Errorf("%d ms: want at least 0 and at most a year", *field)
		}
		if *field == 0 {
			*field = def.Milliseconds()
		}
	}
	if s.Permissions.Network.IsZero() {
		s.Permissions = s.Permissions.Over(publicNetwork())
	}
	if err := s.Permissions.Check(); err != nil {
		return err
	}
	return errors.Join(s.completeQuotas(), s.completeIsolations(), s.checkMounts(), s.checkHosts(), s.checkPreviewHost(), s.checkSnippets(), s.checkPublicURL())
}

// publicNetwork allows the public internet and the guest's own localhost.
func publicNetwork() policy.Permissions {
	p, err := policy.Parse([]byte(`{"network":"allow"}`))
	if err != nil {
		panic(err) // the text is constant
	}
	return p
}

func (s *Settings) completeQuotas() error {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return fmt.Errorf("sysinfo: %w", err)
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("getrlimit: %w", err)
	}
	server, tenant := quota.DefaultLimits(int64(info.Totalram)*int64(info.Unit), int(min(files.Cur, math.MaxInt32)))
	for name, l := range s.Tenants {
		if err := l.Check(); err != nil {
			return fmt.Errorf("tenants: %s: %w", name, err)
		}
		if kind, rest, ok := strings.Cut(name, ":"); !ok || rest == "" || kind != "uid" && kind != "token" {
			return fmt.Errorf("tenants: %q: want uid:NUMBER or token:NAME", name)
		}
	}
	if err := errors.Join(s.Server.Check(), s.Tenant.Check()); err != nil {
		return err
	}
	s.Server = s.Server.Or(server)
	s.Named, s.Tenant = s.Tenant, s.Tenant.Or(tenant)
	return nil
}

func (s *Settings) checkMounts() error {
	if s.Mounts != nil && (!filepath.IsAbs(s.Mounts.Base) || filepath.Clean(s.Mounts.Base) != s.Mounts.Base) {
		return fmt.Errorf("mounts.base %q: want an absolute, clean path", s.Mounts.Base)
	}
	return nil
}

func (s *Settings) checkHosts() error {
	if slices.Contains(s.Hosts, "") {
		return errors.New("hosts: a name is empty")
	}
	for field, origins := range map[string][]string{
		"origins": s.Origins, "snippets: origins": s.Snippets.Origins, "playground: frameAncestors": s.Playground.FrameAncestors,
	} {
		for _, origin := range origins {
			if !originForm().MatchString(origin) {
				return fmt.Errorf("%s: %q: want http:// or https:// and a host in lower case", field, origin)
			}
		}
	}
	return nil
}

// originForm is the form of an origin that is safe in a header: characters such as ; would begin another directive.
var originForm = lazyregexp.New(`^https?://([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(:[0-9]{1,5})?$`)

// domain is the form of a host name in lower case that is not an IP address.
var domain = lazyregexp.New(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// maxDomain leaves room for the label of a port, in the 253 characters of a name.
const maxDomain = 180

func (s *Settings) checkPreviewHost() error {
	if s.PreviewHost != "" && (len(s.PreviewHost) > maxDomain || !domain().MatchString(s.PreviewHost)) {
		return fmt.Errorf("previewHost %q: want the name of a host in lower case, without a port", s.PreviewHost)
	}
	return nil
}

// Trusted returns the settings of a server whose only client is trusted like root. Its limits only keep
// sums from overflowing. Its runs and sandboxes may last a year; the defaults of runs are as for all clients.
func Trusted() *Settings {
	const year = int64(365 * 24 * time.Hour / time.Millisecond)
	all := quota.Limits{
		Sandboxes: 1 << 20, Runs: 1 << 20, Memory: 1 << 60, CPUs: 1 << 30, Disk: 1 << 60, Files: 1 << 60,
		Requests: 1 << 30, Upload: 1 << 40, Concurrent: 1 << 20, Bodies: 1 << 40,
		Snapshots: 1 << 20, SnapshotBytes: 1 << 60, Images: 1 << 20, ImageBytes: 1 << 60, Sessions: 1 << 20, Connections: 1 << 20,
	}
	return &Settings{
		Trusted: true, Allowed: []Isolation{{Name: isNative}}, IdleTimeoutMs: year, LifetimeMs: year, RunTimeoutMs: year, Server: all, Tenant: all,
		Snippets: Snippets{Adapters: []snippets.Adapter{snippets.None, snippets.Directive}, Network: publicPreset},
	}
}

// PortRange is the ports from First to Last.
type PortRange struct{ First, Last uint16 }

// UnmarshalText parses a port, or a range such as 8000-8099.
func (r *PortRange) UnmarshalText(text []byte) error {
	first, last, isRange := strings.Cut(string(text), "-")
	if !isRange {
		last = first
	}
	a, err1 := strconv.ParseUint(first, 10, 16)
	b, err2 := strconv.ParseUint(last, 10, 16)
	if err1 != nil || err2 != nil || a == 0 || b < a {
		return fmt.Errorf("%q: want a port, or a range such as 8000-8099", text)
	}
	*r = PortRange{uint16(a), uint16(b)}
	return nil
}

// AllowsHostPort reports whether tenants may name a port.
func (s *Settings) AllowsHostPort(port int) bool {
	return s.Trusted || slices.ContainsFunc(s.HostPorts, func(r PortRange) bool { return int(r.First) <= port && port <= int(r.Last) })
}

// Playground are the settings of the page for people.
type Playground struct {
	// Off turns it off.
	Off bool `json:"off,omitzero"`

	// FrameAncestors are the origins of pages that may show it in a frame, such as
	// https://docs.example.com. Default: none.
	FrameAncestors []string `json:"frameAncestors,omitzero"`
}
