package work

import (
	"context"
	"errors"
	"unicode/utf8"

	"gaol/runtime/snippets/bundle"
	"gaol/runtime/snippets/lint"
)

var bundleOperation = define("bundle", func(j bundle.Job) bundle.Built { return j.Run() })

// Bundle is [bundle.Job.Run], for bundle.Options.Run.
func (d *Domain) Bundle(ctx context.Context, j bundle.Job) (bundle.Built, error) {
	built, err := bundleOperation.do(ctx, d, j)
	if failure, ok := errors.AsType[*Failure](err); ok {
		return bundle.Built{Problems: []bundle.Problem{{Path: j.Entry, Line: 1, Column: 1, Message: "the snippet: " + failure.Reason}}}, nil
	}
	return built, err
}

// checkedFile is a file to lint.
type checkedFile struct {
	Rules  lint.Rules
	Path   string
	Source string
}

var lintOperation = define("lint", func(f checkedFile) []lint.Problem { return f.Rules.Check(f.Path, f.Source) })

// maxProblems is how many problems of a file are reported.
const maxProblems = 100

// Lint is [lint.Rules.Check].
func (d *Domain) Lint(ctx context.Context, rules lint.Rules, path, source string) ([]lint.Problem, error) {
	problem := func(message string) []lint.Problem {
		return []lint.Problem{{Path: path, Line: 1, Column: 1, Rule: lint.Syntax, Message: message}}
	}
	if !utf8.ValidString(source) { // JSON would hide that
		return problem("the code is not UTF-8"), nil
	}
	list, err := lintOperation.do(ctx, d, checkedFile{rules, path, source})
	if failure, ok := errors.AsType[*Failure](err); ok {
		return problem("the code: " + failure.Reason), nil
	}
	list = list[:min(len(list), maxProblems)]
	for i := range list {
		list[i].Path, list[i].Message = path, list[i].Message[:min(len(list[i].Message), maxMessage)]
	}
	return list, err
}
