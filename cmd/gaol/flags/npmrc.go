package flags

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// maxNpmrc is the most bytes of a file that are read.
const maxNpmrc = 1 << 20

// registryAddresses returns the registries of npm's configuration and of single scopes, each as
// HOST:PORT, sorted. The configuration is that of the user who runs gaol, and of the folder
// project unless that is "". Results and errors contain no tokens and passwords. gaol does not need npm on
// the host. Hosts that only a registry's responses name, such as mirrors of packages, are not included.
func registryAddresses(project string) ([]string, error) {
	settings := npmSettings{"registry": "registry.npmjs.org:443"}
	for _, file := range npmrcFiles(project) {
		if err := settings.read(file); err != nil {
			return nil, err
		}
	}
	for _, variable := range os.Environ() {
		name, text, _ := strings.Cut(variable, "=")
		key, ok := strings.CutPrefix(strings.ToLower(name), "npm_config_")
		if !ok || text == "" {
			continue
		}
		if err := settings.set(key, text, name); err != nil {
			return nil, err
		}
	}
	return slices.Compact(slices.Sorted(maps.Values(settings))), nil
}

// npmSettings are the addresses of registries by their keys, registry and @SCOPE:registry.
type npmSettings map[string]string

// set sets the address of a registry. It ignores other keys. Its errors lack the value, which may contain a
// password.
func (n npmSettings) set(key, value, from string) error {
	if key != "registry" && !(strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry")) {
		return nil
	}
	address, err := registryAddress(value)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", key, from, err)
	}
	n[key] = address
	return nil
}

// read reads a file, which need not exist.
func (n npmSettings) read(file string) error {
	text, err := ReadFile(file, maxNpmrc, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
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
		if err := n.set(strings.TrimSpace(key), value, file); err != nil {
			return err
		}
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

var (
	errNotURL = errors.New("not an http or https URL")
	errLocal  = errors.New("on the host's localhost, which no guest reaches")
)

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
		return "", errLocal
	}
	return net.JoinHostPort(host, port), nil
}
