package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
)

// phrase is a way to name something by a clause instead of a term.
type phrase struct {
	name string
	expr *regexp.Regexp
}

// phrases are rare in comments of comparable projects: fewer than 4 in 1,000 lines.
var phrases = []phrase{
	{"say", words(`says?`)},
	{"those of", words(`those (of|that|from)`)},
	{"one that", words(`ones? that`)},
	{"of its own", words(`of (its|their|his) own`)},
	{"at once", words(`at once`)},
	{"what the", words(`what (an?|the|it|is|they)`)},
	{"has no", words(`has (no|the|an?)`)},
	{"hosts outside", words(`hosts? outside|way out`)},
}

func words(expr string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(?:` + expr + `)\b`) }

// prose matches text with two words in succession, unlike names, paths and formats.
var prose = regexp.MustCompile(`[a-z][,;:]? [a-z]`)

// kind is a kind of text.
type kind int

// The kinds of text.
const (
	comments kind = iota
	texts         // errors, help and other strings of the product
	docs
	kinds
)

// String returns the name of the flag with the kind's budget.
func (k kind) String() string { return [kinds]string{"comments", "strings", "docs"}[k] }

// rates are numbers of phrases in 1,000 lines of each kind.
type rates [kinds]float64

// wordCount counts phrases, and lines of comments.
type wordCount struct {
	lines     [kinds]int
	found     [kinds][]int // by phrase
	places    []string     // of the phrases
	code      int          // lines of the product
	commented int          // lines of comments in the product
}

// checkWords prints how often phrases occur in the repository at root, and fails if there are more than most.
func checkWords(root string, most rates, lists bool) error {
	w := newWordCount()
	if err := eachFile(root, w.addFile, "*.go", "*.md"); err != nil {
		return err
	}
	if lists {
		for _, place := range w.places {
			fmt.Println(place)
		}
	}
	return errors.Join(w.report(os.Stdout), w.within(most))
}

func newWordCount() *wordCount {
	w := &wordCount{}
	for k := range kinds {
		w.found[k] = make([]int, len(phrases))
	}
	return w
}

// addFile counts a file of Go or Markdown.
func (w *wordCount) addFile(name string, text []byte) error {
	switch {
	case strings.Contains(name, "/testdata/"), name == "CHANGELOG.md": // entries of old versions do not change
		return nil
	case strings.HasSuffix(name, ".md"):
		w.addDocument(name, text)
		return nil
	}
	return w.addGo(name, text)
}

// addGo counts the comments of a Go file and, if it is part of the product, its strings.
func (w *wordCount) addGo(name string, text []byte) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments)
	if err != nil || ast.IsGenerated(file) {
		return err
	}
	line := func(n ast.Node) int { return set.Position(n.Pos()).Line }
	before := w.lines[comments]
	for _, group := range file.Comments {
		w.add(comments, name, line(group), group.Text())
	}
	if !isProduct(name) {
		return nil
	}
	w.commented += w.lines[comments] - before
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if value, err := strconv.Unquote(literal.Value); err == nil && prose.MatchString(value) {
				w.add(texts, name, line(n), value)
			}
		}
		return true
	})
	lines, err := goLines(name, text)
	w.code += lines
	return err
}

// addDocument counts the paragraphs of a Markdown file, without its code blocks.
func (w *wordCount) addDocument(name string, text []byte) {
	var paragraph strings.Builder
	first, n, inCode := 1, 0, false
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSpace(line)
		isFence := bytes.HasPrefix(line, []byte("```"))
		if !inCode && !isFence && len(line) > 0 {
			fmt.Fprintf(&paragraph, "%s\n", line)
			continue
		}
		w.add(docs, name, first, paragraph.String())
		paragraph.Reset()
		first, inCode = n+1, inCode != isFence
	}
	w.add(docs, name, first, paragraph.String())
}

// add counts text that begins at a line of a file.
func (w *wordCount) add(of kind, file string, line int, text string) {
	text = strings.TrimSpace(text)
	if text == "" {
		return
	}
	w.lines[of] += 1 + strings.Count(text, "\n")
	text = strings.Join(strings.Fields(text), " ") // a phrase may continue on the next line
	for i, p := range phrases {
		for _, at := range p.expr.FindAllStringIndex(text, -1) {
			w.found[of][i]++
			around := text[max(0, at[0]-40):min(len(text), at[1]+40)]
			w.places = append(w.places, fmt.Sprintf("%s:%d: %v: %s: %q", file, line, of, p.name, around))
		}
	}
}

// rate returns how often phrase i occurs in 1,000 lines.
func (w *wordCount) rate(of kind, i int) float64 {
	return 1000 * float64(w.found[of][i]) / float64(max(1, w.lines[of]))
}

// within fails if there are more phrases than the budget allows. 0 is no budget.
func (w *wordCount) within(most rates) error {
	var above []error
	for k := range kinds {
		for i, p := range phrases {
			if rate := w.rate(k, i); most[k] > 0 && rate > most[k] {
				above = append(above, fmt.Errorf("%q: %.1f in 1,000 lines of %v: the budget is %g; -list prints where", p.name, rate, k, most[k]))
			}
		}
	}
	return errors.Join(above...)
}

// report prints the rates as a table.
func (w *wordCount) report(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for k := range kinds {
		fmt.Fprintf(table, "%v\t", k)
	}
	fmt.Fprintln(table, "\tin 1,000 lines")
	for i, p := range phrases {
		for k := range kinds {
			fmt.Fprintf(table, "%.1f\t", w.rate(k, i))
		}
		fmt.Fprintf(table, "\t%s\n", p.name)
	}
	for k := range kinds {
		fmt.Fprintf(table, "%d\t", w.lines[k])
	}
	fmt.Fprintln(table, "\tlines")
	_, err := fmt.Fprintf(table, "%.2f lines of comments for each line of code of the product\n", float64(w.commented)/float64(max(1, w.code)))
	return errors.Join(err, table.Flush())
}
