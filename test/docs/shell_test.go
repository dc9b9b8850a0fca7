package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gaol/test/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := harness.RemoveBinary(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var (
	gaolCommand = regexp.MustCompile(`(?:^|[\s;|&(])(?:bin/)?gaol((?:\s+[^\s;|&]+)*)`)
	makeCommand = regexp.MustCompile(`^make ([a-z-]+)`)
	quoted      = regexp.MustCompile(`'[^']*'`)
	longFlag    = regexp.MustCompile(`^--?[a-z][a-z-]*`)
)

// Commands in sh blocks need not run, but their flags and targets exist.
func TestShellBlocks(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(repo, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range allBlocks(t, "sh", "console") {
		text := b.text
		if b.lang == "console" {
			text = ""
			for _, c := range commands(b) {
				text += c.text
			}
		}
		for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
			line = strings.TrimSpace(line)
			if m := makeCommand.FindStringSubmatch(line); m != nil && !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%v: make has no target %s", b, m[1])
			}
			line, _, _ = strings.Cut(quoted.ReplaceAllString(line, "quoted"), " # ")
			for _, m := range gaolCommand.FindAllStringSubmatch(line, -1) {
				checkFlags(t, b, strings.Fields(m[1]))
			}
		}
	}
}

// checkFlags compares the flags before "--" with the command's help.
func checkFlags(t *testing.T, b block, args []string) {
	t.Helper()
	words := 0
	for words < len(args) && words < 2 && regexp.MustCompile(`^[a-z]+$`).MatchString(args[words]) {
		words++
	}
	help, err := exec.Command(harness.Gaol(t), append(args[:words:words], "--help")...).Output()
	if err != nil {
		t.Errorf("%v: gaol %s: %v", b, strings.Join(args[:words], " "), err)
		return
	}
	if words == 2 && !strings.Contains(string(help), "gaol "+args[0]+" "+args[1]) {
		words = 1 // the second word is an argument
	}
	if words > 0 && !strings.Contains(string(help), "gaol "+strings.Join(args[:words], " ")) {
		t.Errorf("%v: gaol has no command %s", b, strings.Join(args[:words], " "))
	}
	for _, a := range args[words:] {
		if a == "--" {
			return
		}
		if f := longFlag.FindString(a); f != "" && !regexp.MustCompile(`(?m)^\s+(-\w, )?`+f+`\b|^\s+`+f+`,`).Match(help) {
			t.Errorf("%v: gaol %s has no flag %s", b, strings.Join(args[:words], " "), f)
		}
	}
}
