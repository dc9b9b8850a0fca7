package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"gaol/rootfs"
	"gaol/test/internettest"
)

// settings are the flags and arguments.
type settings struct {
	gaol, dir, memory string
	names             []string
}

func main() {
	var s settings
	flag.StringVar(&s.gaol, "gaol", "bin/gaol", "the `program` under test")
	flag.StringVar(&s.dir, "dir", "bin/packages", "`folder` that the packages are installed in")
	flag.StringVar(&s.memory, "memory", "256m", "`limit` of memory in gaol")
	flag.Parse()
	s.names = flag.Args()
	code := 0
	if !internettest.Inside() {
		code = report(s.check())
	}
	// This starts the command once more, on the tests' internet.
	os.Exit(max(code, internettest.Main(func() int { return report(s.checkOnInternet()) })))
}

// report returns the exit status.
func report(failed int, err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		return 2
	}
	return min(failed, 1)
}

// check installs the packages and runs the programs that need no server. It returns how
// many outcomes differ.
func (s settings) check() (failed int, err error) {
	node, err := imageNode()
	if err != nil {
		return 0, err
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return 0, err
	}
	if err := node.install(s.dir, filepath.Join("test", "packages", "package.json")); err != nil {
		return 0, err
	}
	return s.compareAll("test/packages/programs", "")
}

// compareAll compares the programs of a folder that are named, or all. The programs trust
// the authority of the file ca unless it is "".
func (s settings) compareAll(folder, ca string) (failed int, err error) {
	node, err := imageNode()
	if err != nil {
		return 0, err
	}
	for _, path := range []*string{&s.gaol, &s.dir} {
		if *path, err = filepath.Abs(*path); err != nil {
			return 0, err
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("no programs in %s: run this in the module's root (%w)", folder, err)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	total := 0
	for _, file := range files {
		name := filepath.Base(file)
		if len(s.names) > 0 && !slices.Contains(s.names, name) {
			continue
		}
		j := job{name: name, node: node.program(), gaol: s.gaol, dir: s.dir, memory: s.memory, ca: ca}
		n, err := j.compareFile(file, table)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		total++
		failed += n
	}
	fmt.Printf("%s: %d programs, %d ways each, %d differences; %d known ones in all\n", folder, total, len(ways), failed, len(known))
	return failed, nil
}

// compareFile compares the program in a file, and writes its line.
func (j *job) compareFile(file string, table *tabwriter.Writer) (failed int, err error) {
	if j.code, err = os.ReadFile(file); err != nil {
		return 0, err
	}
	failed, err = j.compare(table)
	return failed, errors.Join(err, table.Flush())
}

// imageNode is the Node of the default image.
func imageNode() (plainNode, error) {
	store, err := rootfs.Open(rootfs.DefaultDir)
	if err != nil {
		return plainNode{}, err
	}
	image, err := store.Stored(rootfs.BuildOptions{})
	if err != nil {
		return plainNode{}, err
	}
	return plainNode{image.Root(), image.Node}, nil
}
