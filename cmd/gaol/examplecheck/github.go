package examplecheck

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
)

// GitHub returns an annotation for each error, as commands of GitHub's runner. Files below
// workspace are named by their paths in it, as GitHub needs.
func (r *Report) GitHub(workspace string) string {
	var b strings.Builder
	for _, result := range r.Results {
		for _, m := range result.Errors {
			fmt.Fprintf(&b, "::error file=%s,line=%d", githubProperty.Replace(inWorkspace(m.File, workspace)), m.Line)
			if m.Column > 0 {
				fmt.Fprintf(&b, ",col=%d", m.Column)
			}
			text := m.Text
			if result.Diff != "" {
				text += "\n" + result.Diff
			}
			fmt.Fprintf(&b, ",title=%s::%s\n", githubProperty.Replace(title(result)), githubData.Replace(text))
		}
	}
	return b.String()
}

// WithoutCommands returns text that GitHub's runner prints and does not interpret: examples may
// have printed its commands.
func WithoutCommands(text string) string {
	token := rand.Text()
	return "::stop-commands::" + token + "\n" + text + "::" + token + "::\n"
}

// The runner's own escapes: of a command's text, and of its properties.
var (
	githubData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func title(r *Result) string {
	if r.Example.Name == "" {
		return "Example failed"
	}
	return "Example " + r.Example.Name + " failed"
}

func inWorkspace(file, workspace string) string {
	absolute, err := filepath.Abs(file)
	if err != nil || workspace == "" {
		return file
	}
	if rel, err := filepath.Rel(workspace, absolute); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}
