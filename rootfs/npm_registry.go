package rootfs

import (
	"archive/tar"
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	"golang.org/x/sys/unix"

	"gaol/rootfs/download"
	"gaol/rootfs/layer"
)

const (
	defaultRegistry = "https://registry.npmjs.org"
	maxMetadata     = 64 << 20 // bytes of a package's description
)

// abbreviated is the media type of a description with versions and little else.
const abbreviated = "application/vnd.npm.install-v1+json"

// configuredRegistry finds the registry as npm does: see NPMRegistries. It does not read credentials from an npmrc.
func configuredRegistry() (*url.URL, error) {
	all, err := NPMRegistries("")
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(strings.TrimRight(all["registry"].URL, "/"))
	if err != nil {
		return nil, fmt.Errorf("npm registry: %w", err)
	}
	if (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return nil, fmt.Errorf("npm registry %q: not an http or https address", u.Redacted())
	}
	return u, nil
}

// release is the registry's description of one version of a package.
type release struct {
	Version string `json:"version"`
	Dist    struct {
		Integrity string `json:"integrity"`
	} `json:"dist"`
}

// Resolve returns the package for a version, or the newest one for the first numbers of a
// version. A pinned integrity takes precedence over the registry's.
func (c *npmClient) Resolve(ctx context.Context, name, version string) (npmPackage, error) {
	if p, err := c.in.pins.Find(name, version); err == nil {
		return p, nil
	}
	r, err := c.release(ctx, name, version)
	if err != nil {
		return npmPackage{}, err
	}
	return newNPMPackage(name, r.Version, cmp.Or(c.in.pins[name+"@"+r.Version], r.Dist.Integrity))
}

// release asks the registry for the newest release whose version is version or starts with it.
func (c *npmClient) release(ctx context.Context, name, version string) (release, error) {
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
		if v == r.Version && npmVersion().MatchString(v) && strings.HasPrefix(v+".", version+".") &&
			(newest.Version == "" || semver.Compare("v"+v, "v"+newest.Version) > 0) {
			newest = r
		}
	}
	if newest.Version == "" {
		return release{}, fmt.Errorf("%s: the registry lacks version %s", name, version)
	}
	return newest, nil
}

// maxTarball bounds a package's tarball in bytes. Node's has 50 MiB.
const maxTarball = 512 << 20

// Tarball opens the package's tarball after checking its hash. It keeps tarballs in the
// folder keep, by hash. It downloads missing and damaged tarballs to the folder temp, on the
// same file system, and then moves them to keep.
func (c *npmClient) Tarball(ctx context.Context, p npmPackage, keep, temp string, r *download.Reporter) (*os.File, error) {
	kept := filepath.Join(keep, p.Integrity)
	f, err := download.Open(kept, sha512.New(), p.Integrity)
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, download.ErrIntegrity) {
		return f, err
	}
	f, err = os.Create(filepath.Join(temp, p.Integrity))
	if err != nil {
		return nil, err
	}
	if err = c.download(ctx, p, f, r); err == nil {
		err = download.Verify(f, sha512.New(), p.Integrity)
	}
	if err == nil {
		err = os.Rename(f.Name(), kept)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", p, err), f.Close())
	}
	return f, nil
}

// download writes the package's tarball to f. It does not check the hash.
func (c *npmClient) download(ctx context.Context, p npmPackage, f *os.File, r *download.Reporter) error {
	// This path is the convention of the protocol. The address in a description could lead
	// anywhere.
	address := fmt.Sprintf("%s/-/%s-%s.tgz", p.Name, path.Base(p.Name), p.Version) // a scope is part of the folder only
	return c.get(ctx, address, "", func(body io.Reader, size int64) error {
		if size > maxTarball {
			return fmt.Errorf("%d bytes are too many", size)
		}
		if err := errors.Join(f.Truncate(0), download.Rewind(f)); err != nil {
			return err
		}
		r.Fetch(p.String(), size)
		n, err := io.Copy(f, io.LimitReader(body, maxTarball+1))
		if err == nil && n > maxTarball {
			err = fmt.Errorf("more than %d bytes", maxTarball)
		}
		return err
	})
}

// unpackPackage unpacks a package's gzipped tarball into the tree. place returns the path for a
// file of the package, or "" to leave it out. The hash of the tarball must have been
// checked before. As a second line of defense, unpackPackage refuses entries that no package
// needs.
func unpackPackage(ctx context.Context, r io.Reader, t *layer.Tree, place func(name string) string) error {
	plain, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	defer plain.Close()
	return t.ApplyPackage(ctx, plain, func(h *tar.Header, _ *bufio.Reader) (string, error) {
		// The name of the single top folder is "package" only by convention.
		name := strings.TrimSuffix(h.Name, "/")
		_, below, isBelow := strings.Cut(name, "/")
		switch {
		case !fs.ValidPath(name) || strings.ContainsRune(name, '\\'):
			return "", fmt.Errorf("%w: path %q", layer.ErrRefused, h.Name)
		case h.Typeflag == tar.TypeDir: // made with its files
			return "", nil
		case h.Typeflag != tar.TypeReg || h.Mode&0o7000 != 0 || !isBelow: // npm packs neither links nor devices
			return "", fmt.Errorf("%w: %q is of type %q, with mode %o", layer.ErrRefused, h.Name, h.Typeflag, h.Mode)
		}
		return place(below), nil
	})
}

// maxNpmrc is the most bytes that a file of npm's configuration may have.
const maxNpmrc = 1 << 20

// NPMRegistry is a registry of npm's configuration.
type NPMRegistry struct {
	URL  string // as the configuration has it; may contain a password
	From string // the file or variable that sets it
}

// npmRegistries are registries by their keys, registry and @SCOPE:registry.
type npmRegistries map[string]NPMRegistry

// NPMRegistries returns the registries of npm's configuration by their keys, registry and @SCOPE:registry. The
// configuration is that of the user who runs gaol, and of the folder project unless that is "". Errors contain no
// tokens and passwords. npm need not be on the host.
func NPMRegistries(project string) (map[string]NPMRegistry, error) {
	registries := npmRegistries{"registry": {defaultRegistry, "npm"}}
	for _, file := range npmrcFiles(project) {
		if err := registries.read(file); err != nil {
			return nil, err
		}
	}
	environment := os.Environ()
	slices.Sort(environment) // names in lower case last: they win
	for _, variable := range environment {
		name, text, _ := strings.Cut(variable, "=")
		if key, ok := strings.CutPrefix(strings.ToLower(name), "npm_config_"); ok && text != "" {
			registries.set(key, text, name)
		}
	}
	return registries, nil
}

// set sets a registry. It ignores other keys.
func (n npmRegistries) set(key, value, from string) {
	if key == "registry" || strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry") {
		n[key] = NPMRegistry{value, from}
	}
}

// read reads a file, which need not exist.
func (n npmRegistries) read(file string) error {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO does not block
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxNpmrc+1))
	if err == nil && len(text) > maxNpmrc {
		err = fmt.Errorf("read %s: more than 1m", file)
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "[") {
			break // keys of a section are not npm's
		}
		key, value, _ := strings.Cut(line, "=")
		if comment := strings.IndexAny(value, ";#"); comment >= 0 {
			value = value[:comment]
		}
		value = os.Expand(strings.Trim(strings.TrimSpace(value), `"'`), expandNpm)
		n.set(strings.TrimSpace(key), value, file)
	}
	return nil
}

// expandNpm returns the value of a variable of the environment. Like npm, it leaves a reference to an unset one.
func expandNpm(name string) string {
	if value, ok := os.LookupEnv(name); ok {
		return value
	}
	return "${" + name + "}"
}

// npmrcFiles returns the paths of the files that npm reads, the most important last. They need
// not exist.
func npmrcFiles(project string) (list []string) {
	global := os.Getenv("npm_config_globalconfig")
	if node, err := exec.LookPath("node"); err == nil && global == "" {
		global = filepath.Join(filepath.Dir(filepath.Dir(node)), "etc", "npmrc")
	}
	user := os.Getenv("npm_config_userconfig")
	if home, err := os.UserHomeDir(); err == nil && user == "" {
		user = filepath.Join(home, ".npmrc")
	}
	if project != "" {
		project = filepath.Join(project, ".npmrc")
	}
	return slices.DeleteFunc([]string{global, user, project}, func(file string) bool { return file == "" })
}
