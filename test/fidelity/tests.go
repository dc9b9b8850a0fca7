package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// suites are the folders with tests.
var suites = []string{"parallel", "sequential", "es-module"}

// nodeTest is one of Node's tests.
type nodeTest struct {
	name  string   // such as "parallel/test-fs-open.js"
	flags []string // of Node, that it asks for
	code  string
}

var flagLine = regexp.MustCompile(`(?m)^//\s+Flags:(.*)$`)

// readTests reads the tests of a source tree whose names match.
func readTests(folder string, only *regexp.Regexp) (tests []nodeTest, err error) {
	for _, suite := range suites {
		files, err := filepath.Glob(filepath.Join(folder, "test", suite, "test-*"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			t := nodeTest{name: suite + "/" + filepath.Base(file)}
			if !slices.Contains([]string{".js", ".mjs", ".cjs"}, filepath.Ext(file)) || !only.MatchString(t.name) {
				continue
			}
			code, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			t.code = string(code)
			for _, found := range flagLine.FindAllStringSubmatch(t.code, -1) {
				t.flags = append(t.flags, strings.Fields(found[1])...)
			}
			tests = append(tests, t)
		}
	}
	return tests, nil
}

// outcome is how one run of a test ended.
type outcome struct {
	passed, skipped bool
	trouble         string // for a person, if it failed
}

// skipLine is what test/common prints when it skips a test.
const skipLine = "1..0 # Skipped:"

// judge makes an outcome of a run's output.
func judge(exit int, stdout, trouble string) outcome {
	o := outcome{passed: exit == 0, skipped: exit == 0 && strings.Contains(stdout, skipLine)}
	if !o.passed {
		o.trouble = trouble
	}
	return o
}
