package npm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

const (
	defaultRegistry = "https://registry.npmjs.org"
	maxMetadata     = 64 << 20 // bytes of a package's description
)

// abbreviated is the media type of a description with versions and little else.
const abbreviated = "application/vnd.npm.install-v1+json"

// configuredRegistry finds the registry as npm does: in the environment, then in the user's
// npmrc, then the public one. It does not read credentials from an npmrc.
func configuredRegistry() (*url.URL, error) {
	text := cmp.Or(os.Getenv("npm_config_registry"), os.Getenv("NPM_CONFIG_REGISTRY"))
	if text == "" {
		var err error
		if text, err = npmrcRegistry(); err != nil {
			return nil, err
		}
	}
	u, err := url.Parse(strings.TrimRight(cmp.Or(text, defaultRegistry), "/"))
	if err != nil {
		return nil, fmt.Errorf("npm registry: %w", err)
	}
	if (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return nil, fmt.Errorf("npm registry %q: not an http or https address", u.Redacted())
	}
	return u, nil
}

// npmrcRegistry returns the registry of the user's npmrc, "" if it names none.
func npmrcRegistry() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", nil // without a home, npm reads no npmrc either
	}
	text, err := os.ReadFile(filepath.Join(home, ".npmrc"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var registry string
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, "=")
		if strings.TrimSpace(key) == "registry" {
			registry = strings.Trim(strings.TrimSpace(value), `"'`) // the last line wins
		}
	}
	return registry, nil
}

// release is the registry's description of one version of a package.
type release struct {
	Version string `json:"version"`
	Dist    struct {
		Integrity string `json:"integrity"`
	} `json:"dist"`
}

// Resolve returns the package for a version, or the newest one for the first numbers of a
// version. A pinned integrity takes precedence over that of the registry.
func (c *Client) Resolve(ctx context.Context, name, version string) (Package, error) {
	p, err := c.o.Pins.Find(name, version)
	if !errors.Is(err, ErrNoPin) {
		return p, err
	}
	r, err := c.release(ctx, name, version)
	if err != nil {
		return Package{}, err
	}
	if p, err = c.o.Pins.Find(name, r.Version); !errors.Is(err, ErrNoPin) {
		return p, err
	}
	return newPackage(name, r.Version, r.Dist.Integrity)
}

// release asks the registry for the newest release whose version is version or starts with it.
func (c *Client) release(ctx context.Context, name, version string) (release, error) {
	var all struct {
		Versions map[string]release `json:"versions"`
	}
	err := c.get(ctx, name, abbreviated+", application/json", func(body io.Reader, _ int64) error {
		text, err := io.ReadAll(io.LimitReader(body, maxMetadata+1))
		if err != nil {
			return err
		}
		if len(text) > maxMetadata {
			return fmt.Errorf("description of more than %d bytes", maxMetadata)
		}
		return json.Unmarshal(text, &all)
	})
	if err != nil {
		return release{}, err
	}
	var newest release
	for v, r := range all.Versions {
		if v == r.Version && VersionForm().MatchString(v) && strings.HasPrefix(v+".", version+".") &&
			(newest.Version == "" || semver.Compare("v"+v, "v"+newest.Version) > 0) {
			newest = r
		}
	}
	if newest.Version == "" {
		return release{}, fmt.Errorf("%s: the registry has no version %s", name, version)
	}
	return newest, nil
}
