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
		if _, run := f.info.find("run"); f.info.ending == "" || !run && !allFences {
			continue
		}
		a, _ := f.info.find("example")
		e := named[a.value]
		if e == nil {
			e = newExample(p.folder, p.path, f.line)
			e.Name = a.value
			list = append(list, e)
		}
		if a.value != "" {
			named[a.value] = e
		} else {
			unnamed++
			e.Name = fmt.Sprintf("#%d", unnamed)
		}
		e.addFence(f)
	}
	for _, e := range list {
		e.checkMain()
	}
	return list
}

// addFence adds a fence to its example.
func (e *Example) addFence(f fence) {
	e.setAttributes(f.info)
	name := mainFile
	if file, ok := f.info.find("file"); ok {
		name = file.value
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
	if a, ok := i.find("skip"); ok {
		if e.Skip = strings.TrimSpace(a.value); e.Skip == "" {
			e.Fault = `skip needs a reason: skip="needs a browser"`
		}
	}
	if a, ok := i.find("error"); ok {
		e.WantError, e.ErrorText = true, a.value
	}
	for _, name := range []string{"example", "file"} {
		if a, ok := i.find(name); ok && a.value == "" {
			e.Fault = name + " needs a value: " + name + "=NAME"
		}
	}
	if a, ok := i.find("example"); ok && strings.HasPrefix(a.value, "#") {
		e.Fault = "the name of an example begins with no #"
	}
}

// checkMain finds examples without a file that runs.
func (e *Example) checkMain() {
	if _, ok := e.sources[mainFile]; !ok && e.Fault == "" {
		e.Fault = "no fence contains the file " + mainFile + ": give the fences of an example the same example=NAME"
	}
}
