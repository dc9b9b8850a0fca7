package rootfs

import (
	"bufio"
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

// abbreviated is the form of a description that lists versions and little else.
const abbreviated = "application/vnd.npm.install-v1+json"

// configuredRegistry finds the registry as npm does: the environment, then the
// user's npmrc, then the public one. Credentials of an npmrc are not read.
func configuredRegistry() (*url.URL, error) {
	text := defaultRegistry
	for _, find := range []func() (string, error){
		func() (string, error) { return os.Getenv("npm_config_registry"), nil },
		func() (string, error) { return os.Getenv("NPM_CONFIG_REGISTRY"), nil },
		npmrcRegistry,
	} {
		found, err := find()
		if err != nil {
			return nil, err
		}
		if found != "" {
			text = found
			break
		}
	}
	return parseRegistry(text)
}

func parseRegistry(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil {
		return nil, fmt.Errorf("npm registry: %w", err)
	}
	if (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return nil, fmt.Errorf("npm registry %q: not an http or https address", u.Redacted())
	}
	return u, nil
}

// npmrcRegistry reads the registry line of the user's npmrc; none is "".
func npmrcRegistry() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", nil // no home, so no npmrc: as with npm itself
	}
	f, err := os.Open(filepath.Join(home, ".npmrc"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	var registry string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), "=")
		if strings.TrimSpace(key) == "registry" {
			registry = strings.Trim(strings.TrimSpace(value), `"'`) // the last one wins
		}
	}
	return registry, lines.Err()
}

// release is what the registry says of one version of a package.
type release struct {
	Version string `json:"version"`
	Dist    struct {
		Integrity string `json:"integrity"`
	} `json:"dist"`
}

// resolve finds the package that version, whole or the beginning of one, means.
// Where its integrity is pinned, the registry has no say in it.
func (f *fetcher) resolve(ctx context.Context, in *inputs, name, version string) (pkg, error) {
	if p, known, err := in.pin(name, version); known {
		return p, err
	}
	r, err := f.release(ctx, name, version)
	if err != nil {
		return pkg{}, err
	}
	if p, known, err := in.pin(name, r.Version); known {
		return p, err
	}
	sum, err := parseIntegrity(r.Dist.Integrity)
	if err != nil {
		return pkg{}, fmt.Errorf("%s@%s: %w", name, r.Version, err)
	}
	return pkg{name, r.Version, sum}, nil
}

// release asks the registry for the newest release whose version begins so.
func (f *fetcher) release(ctx context.Context, name, version string) (release, error) {
	if strings.Count(version, ".") == 2 {
		var r release
		err := f.json(ctx, name+"/"+version, &r)
		if err == nil && r.Version != version {
			err = fmt.Errorf("%s@%s: the registry answered with version %q", name, version, r.Version)
		}
		return r, err
	}
	var all struct {
		Versions map[string]release `json:"versions"`
	}
	if err := f.json(ctx, name, &all); err != nil {
		return release{}, err
	}
	var newest release
	for v, r := range all.Versions {
		// versionForm leaves out pre-releases.
		if v == r.Version && versionForm.MatchString(v) && strings.HasPrefix(v, version+".") &&
			(newest.Version == "" || semver.Compare("v"+v, "v"+newest.Version) > 0) {
			newest = r
		}
	}
	if newest.Version == "" {
		return release{}, fmt.Errorf("%s: the registry has no version %s", name, version)
	}
	return newest, nil
}

// json reads the description at path into v.
func (f *fetcher) json(ctx context.Context, path string, v any) error {
	return f.get(ctx, request{path: path, accept: abbreviated + ", application/json"},
		func(body io.Reader, _ int64) error {
			text, err := io.ReadAll(io.LimitReader(body, maxMetadata+1))
			if err != nil {
				return err
			}
			if len(text) > maxMetadata {
				return fmt.Errorf("%s: description of more than %d bytes", path, maxMetadata)
			}
			if err := json.Unmarshal(text, v); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			return nil
		})
}
