//go:build !noserver

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"gaol/cmd/gaol/flags"
	"gaol/internal/lazyregexp"
	"gaol/rootfs"
)

// maxGaolfile bounds a Gaolfile in bytes.
const maxGaolfile = 64 << 10

// gaolfile is a parsed Gaolfile.
type gaolfile struct {
	from   string
	steps  []rootfs.Step
	folder *os.Root // that COPY copies from
}

// readGaolfile reads and parses the Gaolfile at path, or standard input if that is "-". COPY copies from folder. Errors
// name the line.
func (a *app) readGaolfile(ctx context.Context, path string, folder *os.Root) (gaolfile, error) {
	f := gaolfile{folder: folder}
	text, path, err := flags.Input(ctx, path, a.stdin, maxGaolfile)
	if err != nil {
		return f, err
	}
	lines := strings.Split(string(text), "\n")
	for n := 0; n < len(lines); n++ {
		first, line := n, strings.TrimSpace(lines[n])
		if line == "" || line[0] == '#' {
			continue
		}
		for strings.HasSuffix(line, "\\") && n+1 < len(lines) {
			n++
			line = strings.TrimSuffix(line, "\\") + " " + strings.TrimSpace(lines[n])
		}
		if err := f.add(ctx, line); err != nil {
			return f, fmt.Errorf("%s:%d: %w", path, first+1, err)
		}
	}
	if len(f.steps) == 0 {
		return f, fmt.Errorf("%s: no instruction beside FROM", path)
	}
	return f, nil
}

// add parses an instruction.
func (f *gaolfile) add(ctx context.Context, line string) error {
	name, text, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	name, text = strings.ToUpper(name), strings.TrimSpace(text)
	var step rootfs.Step
	var err error
	switch {
	case text == "":
		return fmt.Errorf("%s: no argument", name)
	case name == "FROM" && f.from == "" && len(f.steps) == 0:
		f.from = text
		return nil
	case name == "FROM":
		return errors.New("FROM: it is the first instruction, and only that")
	case name == "RUN":
		step, err = parseRun(ctx, text)
	case name == "WITH":
		step.With = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	case name == "COPY":
		step, err = f.parseCopy(text)
	case name == "ENV":
		step, err = parseEnv(text)
	case name == "USER":
		step.User = text
	case name == "WORKDIR":
		step.Dir = text
	default:
		return fmt.Errorf("%.40q is not one of FROM, RUN, WITH, COPY, ENV, USER and WORKDIR", name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	f.steps = append(f.steps, step)
	return nil
}

// parseRun parses "[--flag=value]... COMMAND".
func parseRun(ctx context.Context, text string) (step rootfs.Step, err error) {
	var options []string
	for strings.HasPrefix(text, "--") {
		end := wordForm().FindStringIndex(text)[1]
		if rest := text[end:]; rest != "" && strings.TrimLeft(rest, " \t") == rest {
			return step, errQuote
		}
		option := unquote(text[:end])
		if strings.HasPrefix(option, "--permissions=@") { // the Gaolfile may be another person's
			return step, errors.New("--permissions: want a JSON object: a Gaolfile names no files of the host")
		}
		options = append(options, option)
		text = strings.TrimSpace(text[end:])
	}
	if text == "" {
		return step, errors.New("no command")
	}
	step.Run = text
	if options != nil {
		step.Runner, err = flags.ParseStep(ctx, options)
	}
	return step, err
}

func (f *gaolfile) parseCopy(text string) (step rootfs.Step, err error) {
	list, err := words(text)
	if err == nil && len(list) < 2 {
		err = errors.New("want SOURCE... TARGET")
	}
	if err != nil {
		return step, err
	}
	last := len(list) - 1
	for _, from := range list[:last] {
		if !filepath.IsLocal(from) {
			return step, fmt.Errorf("%q is outside of the folder with the Gaolfile", from)
		}
	}
	return rootfs.Step{Copy: &rootfs.Copy{Root: f.folder, From: list[:last], To: list[last]}}, nil
}

// parseEnv parses "NAME=VALUE...".
func parseEnv(text string) (step rootfs.Step, err error) {
	list, err := words(text)
	step.Env = map[string]string{}
	for _, word := range list {
		one, bad := variable(word)
		err = errors.Join(err, bad)
		maps.Copy(step.Env, one.Env)
	}
	return step, err
}

// variable parses "NAME=VALUE".
func variable(text string) (step rootfs.Step, err error) {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		return step, fmt.Errorf("%q: want NAME=VALUE", text)
	}
	return rootfs.Step{Env: map[string]string{name: value}}, nil
}

var errQuote = errors.New("a quote is not closed")

// wordForm matches a word of a shell, with quotes and backslashes.
var wordForm = lazyregexp.New(`(?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^\s"'\\])+`)

// words splits text as a shell does, without its expansions.
func words(text string) (list []string, err error) {
	rest := wordForm().ReplaceAllStringFunc(text, func(word string) string {
		list = append(list, unquote(word))
		return ""
	})
	if strings.TrimSpace(rest) != "" {
		return nil, errQuote
	}
	return list, nil
}

var quoteForm = lazyregexp.New(`"(?:[^"\\]|\\.)*"|'[^']*'|\\.`)

// unquote removes the quotes of a word. `\$` stays, because values of variables expand.
func unquote(word string) string {
	return quoteForm().ReplaceAllStringFunc(word, func(part string) string {
		switch part[0] {
		case '\'':
			return strings.ReplaceAll(part[1:len(part)-1], "$", `\$`)
		case '"':
			return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(part[1 : len(part)-1])
		}
		if part == `\$` {
			return part
		}
		return part[1:]
	})
}
