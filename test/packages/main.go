package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	gaol := flag.String("gaol", "bin/gaol", "the `program` under test")
	dir := flag.String("dir", "bin/packages", "`folder` that the packages are installed in")
	flag.Parse()
	failed, err := check(*gaol, *dir, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// check runs the programs that are named, or all, and returns how many differ.
func check(gaol, dir string, names []string) (failed int, err error) {
	gaol, err = filepath.Abs(gaol)
	if err != nil {
		return 0, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return 0, err
	}
	version, err := imageNode(gaol)
	if err != nil {
		return 0, err
	}
	node, err := install(dir, filepath.Join("test", "packages", "package.json"), version)
	if err != nil {
		return 0, err
	}
	files, err := filepath.Glob("test/packages/programs/*")
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("no programs in test/packages: run this in the module's root (%w)", err)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	total := 0
	for _, file := range files {
		name := filepath.Base(file)
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		j := job{name: name, node: node, gaol: gaol, dir: dir}
		if j.code, err = os.ReadFile(file); err != nil {
			return 0, err
		}
		n, err := j.compare(table)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		total++
		failed += n
		table.Flush()
	}
	fmt.Printf("%d programs, %d ways each, %d differences beside %d known ones\n", total, len(ways), failed, len(known))
	return failed, nil
}

// imageNode returns the version of Node in the default image.
func imageNode(gaol string) (string, error) {
	out, err := exec.Command(gaol, "run", "--json", "-e", "__return(process.versions.node)").Output()
	if err != nil {
		return "", fmt.Errorf("%s run: %w", gaol, err)
	}
	var result struct{ Value string }
	if err := json.Unmarshal(out, &result); err != nil {
		return "", err
	}
	return strings.TrimSpace(result.Value), nil
}

// arch is npm's name for this processor.
func arch() string {
	if goruntime.GOARCH == "amd64" {
		return "x64"
	}
	return goruntime.GOARCH
}
