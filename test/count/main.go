package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// npmSource is the folder of the npm package's source.
const npmSource = "cmd/npm/src/"

// size is the size of a folder, or of the product.
type size struct{ lines, files, packages int }

func main() {
	var limit size
	flag.IntVar(&limit.lines, "lines", 0, "how many `lines` of Go the product may have")
	flag.IntVar(&limit.files, "files", 0, "how many `files` of Go it may have")
	flag.IntVar(&limit.packages, "packages", 0, "how many `packages` it may have")
	limitTS := flag.Int("typescript", 0, "how many `lines` of TypeScript the npm package may have")
	countsWords := flag.Bool("words", false, "count phrases in text instead of lines of code")
	lists := flag.Bool("list", false, "with -words, print where the phrases are")
	var most rates
	for kind := range kinds {
		flag.Float64Var(&most[kind], kind.String(), 0, "with -words, how many of each `phrase` 1,000 lines may have")
	}
	flag.Parse()
	root := cmp.Or(flag.Arg(0), ".")
	check := func() error { return checkSize(root, limit, *limitTS) }
	if *countsWords {
		check = func() error { return checkWords(root, most, *lists) }
	}
	if err := check(); err != nil {
		fmt.Fprintln(os.Stderr, "count:", err)
		os.Exit(1)
	}
}

// checkSize prints the size of the product, and fails if it exceeds the limits.
func checkSize(root string, limit size, limitTS int) error {
	folders, typescript, err := count(root)
	if err != nil {
		return err
	}
	total := sum(folders)
	return errors.Join(report(os.Stdout, folders, typescript),
		within("lines of Go", total.lines, limit.lines), within("files of Go", total.files, limit.files),
		within("packages", total.packages, limit.packages), within("lines of TypeScript", typescript, limitTS))
}

// eachFile calls do with the files below root that git tracks.
func eachFile(root string, do func(name string, text []byte) error, patterns ...string) error {
	args := append([]string{"-c", "safe.directory=*", "-C", root, "ls-files", "-z"}, patterns...)
	list, err := exec.Command("git", args...).Output()
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, but not yet in git's index
		}
		if err == nil {
			err = do(name, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// count returns the sizes of the Go packages below root, and the lines of TypeScript.
func count(root string) (folders map[string]size, typescript int, err error) {
	folders = map[string]size{}
	err = eachFile(root, func(name string, text []byte) error {
		switch {
		case !isProduct(name):
		case strings.HasSuffix(name, ".ts"):
			if !bytes.HasPrefix(text, []byte("// Code generated ")) {
				typescript += typescriptLines(text)
			}
		default:
			lines, err := goLines(name, text)
			if err != nil {
				return err
			}
			if lines >= 0 {
				s := folders[path.Dir(name)]
				folders[path.Dir(name)] = size{s.lines + lines, s.files + 1, 1}
			}
		}
		return nil
	}, "*.go", npmSource+"*.ts")
	return folders, typescript, err
}

// isProduct reports whether a file is part of the product, by its path.
func isProduct(name string) bool {
	return !strings.HasPrefix(name, "test/") && !strings.HasPrefix(name, "examples/") &&
		!strings.Contains(name, "/testdata/") && !strings.HasSuffix(name, "_test.go")
}

// goLines returns how many lines of a Go file have code, and -1 if the file is generated.
func goLines(name string, text []byte) (int, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, text, parser.ParseComments)
	if err != nil {
		return 0, err
	}
	if ast.IsGenerated(parsed) {
		return -1, nil
	}
	file := files.AddFile(name, -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0) // skips comments
	lines := map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return len(lines), nil
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue // inserted by the scanner
		}
		first := file.Line(pos)
		for i := range 1 + strings.Count(literal, "\n") {
			lines[first+i] = true
		}
	}
}

// typescriptLines returns how many lines have code. It assumes that comments begin where a line begins,
// and that no string does with the same characters.
func typescriptLines(text []byte) (lines int) {
	inComment := false
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		inComment = inComment || bytes.HasPrefix(line, []byte("/*"))
		if len(line) > 0 && !inComment && !bytes.HasPrefix(line, []byte("//")) {
			lines++
		}
		inComment = inComment && !bytes.HasSuffix(line, []byte("*/"))
	}
	return lines
}

// sum adds up the sizes of folders.
func sum(folders map[string]size) (total size) {
	for _, s := range folders {
		total = size{total.lines + s.lines, total.files + s.files, total.packages + s.packages}
	}
	return total
}

// report prints the sizes as a table.
func report(w io.Writer, folders map[string]size, typescript int) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "lines\tfiles\tpackages\t\t")
	row := func(name string, s size) { fmt.Fprintf(table, "%d\t%d\t%d\t %s\n", s.lines, s.files, s.packages, name) }
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		row(name, folders[name])
	}
	row("all Go", sum(folders))
	fmt.Fprintf(table, "%d\t\t\t %s\n", typescript, "TypeScript in "+npmSource)
	return table.Flush()
}

// within fails if a size is above its budget. 0 is no budget.
func within(what string, size, limit int) error {
	if limit > 0 && size > limit {
		return fmt.Errorf("%d %s: the budget is %d", size, what, limit)
	}
	return nil
}
