package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"gaol/rootfs"
)

func main() {
	gaol := flag.String("gaol", "bin/gaol", "the `program` under test")
	dir := flag.String("dir", "bin/packages", "`folder` that the packages are installed in")
	memory := flag.String("memory", "256m", "`limit` of memory in gaol")
	flag.Parse()
	failed, err := check(*gaol, *dir, *memory, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// check runs the programs that are named, or all, and returns how many differ.
func check(gaol, dir, memory string, names []string) (failed int, err error) {
	gaol, err = filepath.Abs(gaol)
	if err != nil {
		return 0, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return 0, err
	}
	node, err := imageNode()
	if err != nil {
		return 0, err
	}
	if err := node.install(dir, filepath.Join("test", "packages", "package.json")); err != nil {
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
		j := job{name: name, node: node.program(), gaol: gaol, dir: dir, memory: memory}
		if j.code, err = os.ReadFile(file); err != nil {
			return 0, err
		}
		n, err := j.compare(table)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		total++
		failed += n
		if err := table.Flush(); err != nil {
			return 0, err
		}
	}
	fmt.Printf("%d programs, %d ways each, %d differences beside %d known ones\n", total, len(ways), failed, len(known))
	return failed, nil
}

// imageNode is the Node of the default image.
func imageNode() (plainNode, error) {
	dir, err := rootfs.DefaultDir()
	if err != nil {
		return plainNode{}, err
	}
	store, err := rootfs.Open(dir)
	if err != nil {
		return plainNode{}, err
	}
	image, err := store.Lookup("default")
	if err != nil {
		return plainNode{}, err
	}
	return plainNode{image.Root(), image.Node}, nil
}
