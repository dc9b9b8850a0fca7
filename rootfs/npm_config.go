package rootfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

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
