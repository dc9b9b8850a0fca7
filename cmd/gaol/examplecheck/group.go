package examplecheck

import (
	"fmt"
	"slices"
	"strings"

	"gaol/runtime/snippets"
)

// pageExamples returns the examples of a page. Fences with the same example=NAME are one
// example, and its fences of the same file are joined in order.
func pageExamples(p page, allFences bool) (list []*Example) {
	named := map[string]*Example{}
	unnamed := 0
	for _, f := range p.fences() {
		if _, run := f.info.words["run"]; f.info.ending == "" || !run && !allFences {
			continue
		}
		name := f.info.words["example"]
		e := named[name]
		if e == nil {
			e = newExample(p.folder, p.path, f.line)
			e.Name = name
			list = append(list, e)
		}
		if name != "" {
			named[name] = e
		} else {
			unnamed++
			e.Name = fmt.Sprintf("#%d", unnamed)
		}
		e.addFence(f)
	}
	for _, e := range list {
		if _, ok := e.sources[mainFile]; !ok && e.Fault == "" {
			e.Fault = "no fence contains the file " + mainFile + ": give the fences of an example the same example=NAME"
		}
	}
	return list
}

// addFence adds a fence to its example.
func (e *Example) addFence(f fence) {
	e.setAttributes(f.info)
	name := mainFile
	if file, ok := f.info.words["file"]; ok {
		name = file
	}
	at := slices.IndexFunc(e.Files, func(f snippets.File) bool { return f.Path == name })
	if at < 0 {
		e.add(name, f.code, source{file: e.File, lines: f.lines})
		return
	}
	e.Files[at].Source += f.code
	e.sources[name] = source{file: e.File, lines: append(e.sources[name].lines, f.lines...)}
}

// setAttributes applies the attributes of a fence to its example.
func (e *Example) setAttributes(i fenceInfo) {
	if reason, ok := i.words["skip"]; ok {
		if e.Skip = strings.TrimSpace(reason); e.Skip == "" {
			e.Fault = `skip needs a reason: skip="needs a browser"`
		}
	}
	if text, ok := i.words["error"]; ok {
		e.WantError, e.ErrorText = true, text
	}
	for _, name := range []string{"example", "file"} {
		if value, ok := i.words[name]; ok && value == "" {
			e.Fault = name + " needs a value: " + name + "=NAME"
		}
	}
	if strings.HasPrefix(i.words["example"], "#") {
		e.Fault = "the name of an example begins with no #"
	}
}
