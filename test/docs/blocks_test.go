package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const repo = "../.."

// block is a fenced code block of a page.
type block struct {
	page string // its path in the repository
	line int    // of the first line of text
	lang string
	file string // the name behind the language
	text string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// pages lists the documentation.
func pages(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md", "examples/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(repo, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			name, err := filepath.Rel(repo, f)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, name)
		}
	}
	return list
}

// blocks returns all blocks of a page.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repo, page))
	if err != nil {
		t.Fatal(err)
	}
	var list []block
	fence := "" // of the open block
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimRight(line, "\n")
		info := strings.TrimLeft(line, "`")
		ticks := line[:len(line)-len(info)]
		switch {
		case fence != "" && line == fence:
			fence = ""
		case fence != "":
			list[len(list)-1].text += line + "\n"
		case len(ticks) >= 3:
			fence = ticks
			lang, file, _ := strings.Cut(info, " ")
			list = append(list, block{page: page, line: n + 1, lang: lang, file: file})
		}
	}
	if fence != "" {
		t.Errorf("%s: a block is not closed", page)
	}
	return list
}

// allBlocks returns the blocks of all pages in one of the languages.
func allBlocks(t *testing.T, langs ...string) []block {
	t.Helper()
	var list []block
	for _, page := range pages(t) {
		list = append(list, slices.DeleteFunc(blocks(t, page), func(b block) bool { return !slices.Contains(langs, b.lang) })...)
	}
	return list
}

func TestLanguages(t *testing.T) {
	known := []string{"go", "console", "sh", "js", "ts", "tsx", "json", "text", "typescript"}
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if !slices.Contains(known, b.lang) {
				t.Errorf("%v: the language %q is none of %v", b, b.lang, known)
			}
		}
	}
}

// A first-time reader reads the README to its end.
func TestReadmeIsShort(t *testing.T) {
	const most = 200
	text, err := os.ReadFile(filepath.Join(repo, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > most {
		t.Errorf("README.md has %d lines, more than %d", n, most)
	}
}

// A user finds a fact in one page, and an operator reads them all.
func TestDocsAreShort(t *testing.T) {
	const mostPages, mostWords = 18, 34_000 // with fleets, batch runs, Kubernetes, gVisor and virtual machines
	list, err := filepath.Glob(filepath.Join(repo, "docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	words := 0
	for _, page := range list {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		words += len(strings.Fields(string(text)))
	}
	if len(list) > mostPages || words > mostWords {
		t.Errorf("docs has %d pages with %d words, more than %d with %d", len(list), words, mostPages, mostWords)
	}
}
