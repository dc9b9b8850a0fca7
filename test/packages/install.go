package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
)

// addons are the packages that have no binaries in the npm registry. npm compiles them,
// against the headers that come with Node.
var addons = []string{"better-sqlite3", "sqlite3"}

// plainNode is Node outside of a jail: that of an image, with npm.
type plainNode struct{ root, version string }

func (n plainNode) program() string { return filepath.Join(n.root, "usr/local/bin/node") }

// npm runs npm in a folder.
func (n plainNode) npm(dir, headers string, args ...string) error {
	cli := filepath.Join(n.root, "usr/local/lib/node_modules/npm/bin/npm-cli.js")
	cmd := exec.Command(n.program(), append([]string{cli}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"PATH="+filepath.Dir(n.program())+":"+os.Getenv("PATH"),
		"npm_config_nodedir="+headers, "npm_config_build_from_source=true",
		"PYTHONDONTWRITEBYTECODE=1", // node-gyp is in the image, which must not change
		"npm_config_audit=false", "npm_config_fund=false", "npm_config_package_lock=false", "npm_config_loglevel=error",
	)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("npm %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// install makes dir/node_modules by packageFile, unless that was done before.
func (n plainNode) install(dir, packageFile string) error {
	want, err := os.ReadFile(packageFile)
	if err != nil {
		return err
	}
	stamp, text := filepath.Join(dir, "installed"), string(want)+"for Node "+n.version+"\n"
	if have, err := os.ReadFile(stamp); err == nil && string(have) == text {
		return nil
	}
	fmt.Println("installing packages in", dir)
	home := filepath.Join(dir, "node") // for the headers that addons are compiled with
	err = errors.Join(os.RemoveAll(dir), os.MkdirAll(home, 0o755),
		os.WriteFile(filepath.Join(home, "package.json"), []byte("{}"), 0o644),
		os.WriteFile(filepath.Join(dir, "package.json"), want, 0o644))
	if err != nil {
		return err
	}
	name := "node-linux-" + arch()
	headers := filepath.Join(home, "node_modules", name)
	if err := n.npm(home, "", "install", "--ignore-scripts", name+"@"+n.version); err != nil {
		return err
	}
	if err := n.npm(dir, headers, "install", "--ignore-scripts"); err != nil { // most binaries come as packages
		return err
	}
	if err := n.npm(dir, headers, append([]string{"rebuild"}, addons...)...); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(text), 0o644)
}

// arch is npm's name for this processor.
func arch() string {
	if goruntime.GOARCH == "amd64" {
		return "x64"
	}
	return goruntime.GOARCH
}
