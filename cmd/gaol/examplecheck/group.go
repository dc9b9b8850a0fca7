package examplecheck

import (
	"fmt"
	"strings"

	"gaol/runtime/snippets"
)

// pageExamples returns the examples of a page. Fences with the same example=NAME are one
// example, and its fences of the same file are joined in order.
func pageExamples(p page, o FindOptions) (list []*Example) {
	named := map[string]*Example{}
	unnamed := 0
	for _, f := range p.fences() {
		if _, run := f.info.find("run"); f.info.ending == "" || !run && !o.AllFences {
			continue
		}
		a, _ := f.info.find("example")
		e := named[a.value]
		if e == nil {
			e = &Example{File: p.shown, Line: f.line, Name: a.value, folder: p.folder, sources: map[string]source{}}
			list = append(list, e)
		}
		if a.value != "" {
			named[a.value] = e
		} else {
			unnamed++
			e.Name = fmt.Sprintf("#%d", unnamed)
		}
		e.addFence(p, f)
	}
	for _, e := range list {
		e.checkMain()
	}
	return list
}

// addFence adds a fence to its example.
func (e *Example) addFence(p page, f fence) {
	e.setAttributes(f.info)
	s := source{file: p.shown, lines: f.lines}
	file, ok := f.info.find("file")
	if !ok && e.Files == nil {
		e.setMain(f.code, s)
		return
	}
	name := mainFile
	if ok {
		name = file.value
	}
	old, exists := e.sources[name]
	if !exists {
		e.Files = append(e.Files, snippets.File{Path: name, Source: f.code})
		e.sources[name] = s
		return
	}
	for i := range e.Files {
		if e.Files[i].Path == name {
			e.Files[i].Source += f.code
			old.lines = append(old.lines, f.lines...)
			e.sources[name] = old
		}
	}
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
	for _, f := range e.Files {
		if f.Path == mainFile {
			return
		}
	}
	if e.Fault == "" {
		e.Fault = "no fence contains the file " + mainFile + ": give the fences of an example the same example=NAME"
	}
}
