package flags

import (
	"cmp"
	"context"
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

	"gaol/internal/lazyregexp"
)

// maxNpmrc is the most bytes of a file that are read.
const maxNpmrc = 1 << 20

// registry is npm's own.
const registry = "https://registry.npmjs.org/"

// npmSetting is a value, and what set it.
type npmSetting struct{ value, from string }

// registryAddresses returns the registries of npm's configuration and of single scopes, each as
// HOST:PORT, sorted. The configuration is that of the user who runs gaol, and of the folder
// project unless that is "". Results and errors contain no tokens and passwords. gaol does not need npm on
// the host. Hosts that only a registry's responses name, such as mirrors of packages, are not included.
func registryAddresses(project string) ([]string, error) {
	settings := map[string]npmSetting{"registry": {registry, "npm"}}
	for _, file := range npmrcFiles(project) {
		if err := readNpmrc(settings, file); err != nil {
			return nil, err
		}
	}
	for _, variable := range os.Environ() {
		name, text, _ := strings.Cut(variable, "=")
		if key, ok := strings.CutPrefix(strings.ToLower(name), "npm_config_"); ok && text != "" {
			setNpm(settings, key, text, name)
		}
	}
	var list []string
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		a, err := registryAddress(settings[key].value)
		if err != nil { // the value may contain a password
			return nil, fmt.Errorf("%s of %s: %w", key, settings[key].from, err)
		}
		list = append(list, a)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
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

func readNpmrc(settings map[string]npmSetting, file string) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := Read(context.Background(), f, file, maxNpmrc)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			break // keys of a section are not npm's
		}
		key, value, _ := strings.Cut(line, "=")
		setNpm(settings, expandNpm(strings.TrimSpace(key)), expandNpm(unquoteNpm(strings.TrimSpace(value))), file)
	}
	return nil
}

// setNpm stores a value if key names a registry. Nothing else of a file is kept.
func setNpm(settings map[string]npmSetting, key, value, from string) {
	if key == "registry" || strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry") {
		settings[key] = npmSetting{value, from}
	}
}

// unquoteNpm removes the quotes or the comment of a value.
func unquoteNpm(value string) string {
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		return value[1 : n-1]
	}
	if i := strings.IndexAny(value, ";#"); i >= 0 {
		value = strings.TrimSpace(value[:i])
	}
	return value
}

var reference = lazyregexp.New(`\$\{[^${}]+\}`)

// expandNpm replaces ${NAME} by a variable of the environment, if that is set.
func expandNpm(text string) string {
	return reference().ReplaceAllStringFunc(text, func(ref string) string {
		value, ok := os.LookupEnv(ref[2 : len(ref)-1])
		if !ok {
			return ref
		}
		return value
	})
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
