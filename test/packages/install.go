package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// addons are the packages that have no binaries in the npm registry. npm compiles them,
// against the headers that come with Node.
var addons = []string{"better-sqlite3", "sqlite3"}

// install makes dir/node_modules as packageFile says, unless it is there already, and
// returns the path of the Node that the packages are installed for: the same version as
// the image's.
func install(dir, packageFile, version string) (node string, err error) {
	home := filepath.Join(dir, "node")
	node = filepath.Join(home, "node_modules", "node-linux-"+arch(), "bin", "node")
	want, err := os.ReadFile(packageFile)
	if err != nil {
		return "", err
	}
	want = append(want, "// Node "+version+"\n"...)
	stamp := filepath.Join(dir, "installed")
	if have, err := os.ReadFile(stamp); err == nil && bytes.Equal(have, want) {
		return node, nil
	}
	fmt.Println("installing packages in", dir)
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", err
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(home, "package.json"), []byte("{}"), 0o644),
		os.WriteFile(filepath.Join(dir, "package.json"), want[:bytes.LastIndexByte(want, '}')+1], 0o644),
	)
	if err != nil {
		return "", err
	}
	prefix := filepath.Dir(filepath.Dir(node))
	env := append(os.Environ(),
		"PATH="+filepath.Dir(node)+":"+os.Getenv("PATH"),
		"npm_config_nodedir="+prefix, "npm_config_build_from_source=true",
		"npm_config_audit=false", "npm_config_fund=false", "npm_config_package_lock=false", "npm_config_loglevel=error",
	)
	for _, step := range []struct {
		dir  string
		args []string
	}{
		{home, []string{"install", "node-linux-" + arch() + "@" + version}},
		{dir, []string{"install", "--ignore-scripts"}}, // binaries come as packages of their own
		{dir, append([]string{"rebuild"}, addons...)},
	} {
		cmd := exec.Command("npm", step.args...)
		cmd.Dir, cmd.Env = step.dir, env
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("npm %s: %w", strings.Join(step.args, " "), err)
		}
	}
	return node, os.WriteFile(stamp, want, 0o644)
}
